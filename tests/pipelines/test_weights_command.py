"""`weights fetch`: a published file arrives whole and checked, or not at all."""

import functools
import http.server
import json
import threading

import pytest

from shardwright.components.image_trainer.models import published_weights
from shardwright.components.image_trainer.models.published_weights import WEIGHTS, PublishedWeights
from shardwright.pipelines.cli import main

NAME, DATA = "efficientnetv2-b0", b"weights" * 1000
# A made-up file with its true checksum.
ENTRY = PublishedWeights("made_up.h5", "1cb13b9b294c029425b48896908d4518")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        """Prints nothing."""


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Folder of a server on this machine, and its address."""
    monkeypatch.setitem(WEIGHTS, NAME, ENTRY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def fetch(out, mirror, *options):
    return main(["weights", "fetch", NAME, "--out", str(out), "--mirror", mirror, *options])


def test_a_file_is_fetched_once(mirror, tmp_path, capsys, monkeypatch):
    folder, address = mirror
    (folder / ENTRY.file).write_bytes(DATA)
    out = tmp_path / "weights"
    assert fetch(out, f"{address}/") == 0
    assert (out / ENTRY.file).read_bytes() == DATA
    text = capsys.readouterr().out
    assert f"has the published MD5 {ENTRY.md5}" in text
    assert f"trainer: {{encoder: {NAME}, weights: {out / ENTRY.file}}}" in text
    monkeypatch.setattr(published_weights, "_download", lambda *_: pytest.fail("a second download"))
    assert fetch(out, address, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(out / ENTRY.file), "md5": ENTRY.md5, "existed": True}


def test_another_file_is_kept_unless_forced(mirror, tmp_path, capsys):
    folder, address = mirror
    (folder / ENTRY.file).write_bytes(DATA)
    mine = tmp_path / ENTRY.file
    mine.write_bytes(b"mine")
    assert fetch(tmp_path, address) == 2
    assert "Replace it with --force" in capsys.readouterr().err
    assert mine.read_bytes() == b"mine"
    assert fetch(tmp_path, address, "--force") == 0
    assert mine.read_bytes() == DATA


def test_what_is_not_the_published_file_is_not_kept(mirror, tmp_path, capsys):
    folder, address = mirror
    out = tmp_path / "weights"
    (folder / ENTRY.file).write_bytes(b"<html>Log in</html>")
    assert fetch(out, address) == 1
    message = capsys.readouterr().err
    assert f"and the published file has {ENTRY.md5}. Nothing was written. Perhaps a proxy" in message
    (folder / ENTRY.file).unlink()
    assert fetch(out, address) == 1
    message = capsys.readouterr().err
    assert "the server answers 404" in message
    assert f"check that its MD5 is {ENTRY.md5}, and copy it to {out / ENTRY.file}; or give --mirror" in message
    assert fetch(out, "http://127.0.0.1:1") == 1
    assert "cannot be downloaded ([Errno 111] Connection refused)" in capsys.readouterr().err
    assert fetch(out, "weights-folder") == 2
    assert "--mirror: 'weights-folder' is not an address" in capsys.readouterr().err
    assert not out.exists()
