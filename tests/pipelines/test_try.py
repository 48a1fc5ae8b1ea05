"""The server of `shardwright try`: who may ask, how much, and what it never shows."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from shardwright.pipelines import try_server
from shardwright.pipelines.try_server import MOST_BYTES, TryServer


class Stub:
    """Answers without a model."""

    def __init__(self):
        self.got = []

    def page(self):
        return "<!DOCTYPE html><title>page</title>"

    def predict(self, data):
        self.got.append(data)
        return {"bytes": len(data)}

    def example(self, data):
        return {"key": "<b>a.jpg"}


@contextmanager
def served(tried):
    with TryServer(tried) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def stub():
    return Stub()


@pytest.fixture(scope="module")
def server(stub):
    with served(stub) as found:
        yield found


def ask(server, method, path, body=b"", headers=None, *, below=True):
    """Status, headers and body of a reply."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    try:
        connection.request(method, (server.path if below else "") + path, body, headers or {})
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()
    finally:
        connection.close()


OWN = {"X-Shardwright": "1"}


def test_the_page_and_a_photograph_are_answered(server, stub):
    status, headers, body = ask(server, "GET", "")
    assert (status, body) == (200, b"<!DOCTYPE html><title>page</title>")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in headers
    status, headers, body = ask(server, "POST", "predict", b"photograph", OWN)
    assert (status, json.loads(body)) == (200, {"bytes": 10})
    assert headers["Content-Type"].startswith("application/json")
    assert stub.got[-1] == b"photograph"
    own = {**OWN, "Origin": f"http://127.0.0.1:{server.server_port}"}
    assert ask(server, "POST", "example", b"", own)[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"X-Shardwright": "2"}, 403),
        ({**OWN, "Origin": "http://evil.example"}, 403),
        ({**OWN, "Origin": "null"}, 403),
        ({**OWN, "Host": "evil.example"}, 421),
        ({**OWN, "Host": "127.0.0.1"}, 421),
        ({**OWN, "Content-Length": str(MOST_BYTES + 1)}, 413),
        ({**OWN, "Content-Length": "-1"}, 411),
        ({**OWN, "Content-Length": "²"}, 411),
        ({**OWN, "Transfer-Encoding": "chunked"}, 411),
    ],
)
def test_other_sites_and_too_much_are_refused_before_anything_is_read(server, stub, headers, status):
    before = len(stub.got)
    encoded = {name: value.encode("utf-8") for name, value in headers.items()}
    found, reply, body = ask(server, "POST", "predict", None, encoded)
    assert found == status
    assert list(json.loads(body)) == ["problem"]
    assert "Access-Control-Allow-Origin" not in reply
    assert len(stub.got) == before


def test_a_name_of_another_site_gets_no_page(server):
    """After a change of its address by DNS, a page of another site would be of our origin."""
    assert ask(server, "GET", "", headers={"Host": f"evil.example:{server.server_port}"})[0] == 421
    assert ask(server, "OPTIONS", "predict", headers={"Origin": "http://evil.example"})[0] == 501


@pytest.mark.parametrize(
    "path", ["/", "/predict", "/etc/passwd", "/../etc/passwd", "/%2e%2e/etc/passwd", "//etc/passwd", "/x" * 3000, "/é"]
)
def test_no_file_is_behind_any_path(server, path):
    for method in ("GET", "POST"):
        try:
            assert ask(server, method, path, b"", OWN, below=False)[0] in (404, 400, 414)
            assert ask(server, method, path.lstrip("/") or "x", b"", OWN)[0] in (404, 400, 414) or path == "/predict"
        except (UnicodeEncodeError, http.client.InvalidURL):
            assert not path.isascii()
    assert ask(server, "GET", "predict", headers=OWN)[0] == 404


def test_it_listens_on_the_loopback_only(server):
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert server.socket.family == socket.AF_INET
    assert len(re.fullmatch("/(.*)/", server.path)[1]) >= 20


def test_photographs_wait_in_a_short_line(monkeypatch):
    """A page in a loop would otherwise fill the memory with photographs."""
    monkeypatch.setattr(try_server, "_AT_ONCE", 1)
    entered, leave = threading.Event(), threading.Event()

    class Slow(Stub):
        def predict(self, data):
            entered.set()
            leave.wait(20)
            return super().predict(data)

    with served(Slow()) as slow:
        first = threading.Thread(target=ask, args=(slow, "POST", "predict", b"1", OWN))
        first.start()
        assert entered.wait(20)
        status, _, body = ask(slow, "POST", "predict", b"2", OWN)
        leave.set()
        first.join()
        assert status == 503
        assert "Try again" in json.loads(body)["problem"]
        assert ask(slow, "POST", "predict", b"3", OWN)[0] == 200


def test_an_error_of_the_model_is_said_on_the_terminal_and_ends_nothing(capsys):
    class Broken(Stub):
        def predict(self, data):
            raise RuntimeError("/secret/path")

    with served(Broken()) as server:
        status, _, body = ask(server, "POST", "predict", b"1", OWN)
        assert status == 500
        assert b"secret" not in body
        assert ask(server, "GET", "")[0] == 200
    assert "RuntimeError: /secret/path" in capsys.readouterr().err


PROGRAM = """
import sys
from argparse import Namespace
from shardwright.components.predictor import exported_model
from shardwright.pipelines import try_server
from shardwright.pipelines.commands import try_model
class Tried:
    def __init__(self, model, dataset): pass
    def page(self): return ""
    predict = example = None
exported_model.open_model = lambda place, trusted: None
try_server.TriedModel = Tried
options = {"unblessed": False, "trust_model": False, "dataset": None, "json": True, "quiet": False}
sys.exit(try_model.run(Namespace(model="m", port=0, **options)))
"""


@pytest.mark.slow
def test_an_interrupt_ends_it(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    lines = "".join(process.stdout.readline() for _ in range(3))
    address = json.loads(lines)["address"]
    port = int(re.search(":([0-9]+)/", address)[1])
    with socket.create_connection(("127.0.0.1", port)):
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(60) == 0
    assert "Traceback" not in process.stderr.read()


def test_a_port_that_is_taken_is_named(server, monkeypatch, capsys):
    from shardwright.components.predictor import exported_model
    from shardwright.pipelines.cli import main

    monkeypatch.setattr(exported_model, "open_model", lambda place, trusted: None)
    monkeypatch.setattr(try_server, "TriedModel", lambda model, dataset: Stub())
    assert main(["try", "m", "--port", str(server.server_port)]) == 2
    assert f"--port {server.server_port}: cannot be used (Address already in use)" in capsys.readouterr().err
    assert main(["try", "m", "--port", "65536"]) == 2
    assert "is not a port" in capsys.readouterr().err
