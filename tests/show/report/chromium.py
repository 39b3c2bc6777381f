"""A headless Chromium over its debugging pipe: JSON messages that end with a zero byte, on its descriptors 3 and 4."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run")
KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


def installed() -> str | None:
    """The path of a Chromium; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """One browser with one page. `complaints`: errors and warnings of the console, exceptions, and requests over a network."""

    def __init__(self, program: str, profile: Path) -> None:
        self._ids = itertools.count(1)
        self._rest, self._session = b"", None
        self._events: list[dict[str, Any]] = []
        self.complaints: list[str] = []
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_read, to_write)]  # away from 3 and 4
        command = f'exec "$0" "$@" 3<&{theirs[0]} 4>&{theirs[1]}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=theirs, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for fd in (to_read, to_write, *theirs):
            os.close(fd)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session = None
        try:
            self.call("Browser.close")
        finally:
            os.close(self._to)
            os.close(self._from)
            self._process.wait()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of one call. AssertionError with what the browser said where it failed."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def open(self, url: str) -> None:
        """Load a page, and wait until it is there."""
        self._events.clear()
        self.call("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._next()

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, f"{expression}: {found['exceptionDetails']}"
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """One key, down and up, where the focus is."""
        text = {"text": "\r"} if key == "Enter" else {}
        code = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        self.call("Input.dispatchKeyEvent", type="keyDown", **code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def click(self, selector: str) -> None:
        """The mouse on the middle of an element, which is scrolled to first."""
        self.evaluate(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center', inline: 'center'}})")
        box = f"document.querySelector({selector!r}).getBoundingClientRect()"
        x, y = self.evaluate(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({box})")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def resize(self, width: int, height: int = 900) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def look(self, scheme: str = "light", media: str = "") -> None:
        """As a reader with that colour scheme, or a printer, sees it."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._from, 1 << 16)
            assert more, f"the browser ended with status {self._process.wait()}"
            self._rest += more
        first, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(first)
        if "method" in message:
            self._events.append(message)
            self._complain(message["method"], message["params"])
        return message

    def _complain(self, method: str, about: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(about["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(about["args"]))
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(about["entry"]["text"])
        elif method == "Network.requestWillBeSent" and about["request"]["url"].startswith(("http", "ws", "ftp")):
            self.complaints.append(f"request of {about['request']['url']}")
