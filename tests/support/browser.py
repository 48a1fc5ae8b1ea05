"""Chromium for tests of pages: opens an address and returns what the page tells.

A page tells by `tell(value)`. Chromium ends then, and not after a stated time: its virtual time does not wait for
pictures that are decoded and blobs that are read by other threads.
"""

import json
import queue
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--allow-file-access-from-files",
    # A page from the disk sends what it has to tell to this machine.
    "--disable-features=LocalNetworkAccessChecks",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--window-size=1400,2200",
)
TELL = """<script>const tell = (value) =>
fetch("%s", {method: "POST", mode: "no-cors", body: JSON.stringify(value)});</script>"""


class Browser:
    """Debian's Chromium; `apt-get install chromium`.

    `tell` is the script that a page needs before it can tell something.
    """

    def __init__(self, program: str):
        self._told: queue.Queue[object] = queue.Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler):  # noqa: N805
                self._told.put(json.loads(handler.rfile.read(int(handler.headers["Content-Length"]))))
                handler.send_response(204)
                handler.end_headers()

            def log_message(handler, *_):  # noqa: N805
                pass

        self._program = program
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.tell = TELL % f"http://127.0.0.1:{self._server.server_port}/"

    def open(self, address: str, scratch: Path, *, dark: bool = False, wait: float = 180) -> object:
        """What the page tells first. Fails when that takes longer than `wait` seconds."""
        scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        call = [self._program, *OPTIONS, scheme, f"--user-data-dir={scratch / 'profile'}", address]
        with (
            (scratch / "chromium.log").open("w+", encoding="utf-8") as log,
            subprocess.Popen(call, stdout=log, stderr=log) as running,
        ):
            try:
                return self._told.get(timeout=wait)
            except queue.Empty:
                pytest.fail(f"{address} told nothing in {wait} s.\n{(scratch / 'chromium.log').read_text()}")
            finally:
                running.terminate()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
