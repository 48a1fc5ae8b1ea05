"""Chromium with real keys: a page is used by `Input.dispatchKeyEvent`, and asked by JavaScript.

Chromium talks over two pipes, its file descriptors 3 and 4: a JSON object for each message, ended by a zero byte.
"""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from browser import OPTIONS

KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), "ArrowDown": (40, ""), "Escape": (27, "")}


class Page:
    """A page of an own Chromium."""

    def __init__(self, program: str, scratch: Path, *, width: int = 1280, height: int = 900, dark: bool = False):
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        call = [program, *OPTIONS, scheme, f"--user-data-dir={scratch}", "--remote-debugging-pipe", "about:blank"]
        redirected = ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "bash", *call]
        with (scratch.parent / f"{scratch.name}.log").open("w", encoding="utf-8") as log:
            self._running = subprocess.Popen(redirected, pass_fds=(to_read, to_write), stdout=log, stderr=log)
        os.close(to_read)
        os.close(to_write)
        self._rest = b""
        self._number = 0
        self._session = ""
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Calls a method of the protocol and returns its result."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                read = os.read(self._in, 1 << 20)
                assert read, "Chromium ended"
                self._rest += read
            text, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def ask(self, script: str) -> Any:
        """Returns the value of an expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, script: str, seconds: float = 60) -> Any:
        """Returns the value of an expression as soon as it is true."""
        end = time.monotonic() + seconds
        while not (value := self.ask(script)):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.05)
        return value

    def open(self, address: str) -> None:
        """Opens an address and waits for the page with its scripts."""
        self.call("Page.navigate", url=address)
        self.wait(f"document.readyState == 'complete' && location.href.startsWith({json.dumps(address)})")

    def press(self, *keys: str) -> None:
        """Presses keys: names of `KEYS`, or characters."""
        for key in keys:
            code, text = KEYS.get(key, (ord(key[0].upper()), key))
            event = {"key": key, "windowsVirtualKeyCode": code, "text": text}
            self.call("Input.dispatchKeyEvent", type="keyDown", **event)
            self.call("Input.dispatchKeyEvent", type="keyUp", **{**event, "text": ""})

    def close(self) -> None:
        self._running.terminate()
        self._running.wait()
        os.close(self._in)
        os.close(self._out)
