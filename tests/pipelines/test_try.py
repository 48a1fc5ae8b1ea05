"""The server of `shardwright try`: who may ask, how much, and what it never shows."""

import http.client
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from shardwright.pipelines import try_server
from shardwright.pipelines.cli import build_parser, main
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
def served(tried, **where):
    with TryServer(tried, **where) as server:
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


def ask(server, method, path, body=b"", headers=None, *, below=True, to="127.0.0.1"):
    """Status, headers and body of a reply."""
    connection = http.client.HTTPConnection(to, server.server_port, timeout=20)
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
from shardwright.components.predictor import other_model
from shardwright.pipelines import try_server
from shardwright.pipelines.cli import build_parser, main
from shardwright.pipelines.commands import try_model
class Tried:
    def __init__(self, model, dataset): pass
    def page(self): return ""
    predict = example = None
other_model.open_any_model = lambda place, stated, trusted: None
try_server.TriedModel = Tried
call = ["try", "m", "--host", sys.argv[1], "--port", sys.argv[2], "--json"]
sys.exit(try_model.run(build_parser().parse_args(call)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "docker stop"])
def test_a_signal_ends_it(tmp_path, number):
    """SIGTERM to the first process of a container has no effect unless the process handles it."""
    call = [sys.executable, "-c", PROGRAM, "127.0.0.1", "0"]
    process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    lines = "".join(process.stdout.readline() for _ in range(3))
    address = json.loads(lines)["address"]
    port = int(re.search(":([0-9]+)/", address)[1])
    with socket.create_connection(("127.0.0.1", port)):
        os.kill(process.pid, number)
        assert process.wait(60) == 0
    assert "Traceback" not in process.stderr.read()


def test_a_container_answers_from_outside_to_the_names_of_the_loopback_only():
    """From outside means by an address of the loopback that the default does not listen on."""
    with served(Stub(), host="0.0.0.0") as everywhere:
        port = everywhere.server_port
        assert everywhere.address.startswith(f"http://127.0.0.1:{port}/")
        for name, status in (
            (f"127.0.0.1:{port}", 200),
            (f"localhost:{port}", 200),
            ("127.0.0.1:1", 421),
            (f"0.0.0.0:{port}", 421),
            (f"127.0.0.2:{port}", 421),
            (f"evil.example:{port}", 421),
        ):
            assert ask(everywhere, "GET", "", headers={"Host": name}, to="127.0.0.2")[0] == status, name
            own = {**OWN, "Host": name}
            assert ask(everywhere, "POST", "predict", b"photograph", own, to="127.0.0.2")[0] == status, name
        assert ask(everywhere, "GET", "/", headers={"Host": f"localhost:{port}"}, below=False, to="127.0.0.2")[0] == 404
    with served(Stub()) as loopback, pytest.raises(ConnectionRefusedError):
        ask(loopback, "GET", "", to="127.0.0.2")


def test_the_command_of_the_page_publishes_the_port_that_it_serves():
    page = (Path(__file__).parents[2] / "docs/how-to/predict.md").read_text(encoding="utf-8")
    (line,) = re.findall("^docker run .* shardwright try .*$", page, re.MULTILINE)
    outside, _, inside = line.partition(" shardwright try ")
    options = build_parser().parse_args(["try", *shlex.split(inside)])
    assert options.host == try_server.ALL_ADDRESSES
    assert f"-p 127.0.0.1:{options.port}:{options.port} " in outside
    assert f":{options.model}:ro" in outside
    try_server.check_host(options.host, options.port)


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("0.0.0.0", "needs a port that can be published"),
        ("192.0.2.7", "needs a port that can be published"),
        ("::", "is not an IPv4 address"),
        ("example.org", "is not an IPv4 address"),
        ("", "is not an IPv4 address"),
    ],
)
def test_an_address_that_cannot_be_served_is_refused_before_the_model_is_opened(host, said, capsys):
    assert main(["try", "no-model", f"--host={host}"]) == 2
    assert said in capsys.readouterr().err


def test_a_port_that_is_taken_is_named(server, monkeypatch, capsys):
    from shardwright.components.predictor import other_model

    monkeypatch.setattr(other_model, "open_any_model", lambda place, stated, trusted: None)
    monkeypatch.setattr(try_server, "TriedModel", lambda model, dataset: Stub())
    assert main(["try", "m", "--port", str(server.server_port)]) == 2
    assert f"--port {server.server_port}: cannot be used (Address already in use)" in capsys.readouterr().err
    assert main(["try", "m", "--port", "65536"]) == 2
    assert "is not a port" in capsys.readouterr().err
