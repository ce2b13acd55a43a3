"""Chromium without a window, asked over a pipe: real keys, real clicks, what the page says."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Seconds for anything that is waited for.
PATIENCE = 20

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip

#: Chromium reads and writes files 3 and 4, whatever the numbers of the pipes are here.
_LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""

_KEYS = {"Enter": ("\r", 13), "Escape": ("", 27), "Backspace": ("", 8), "ArrowDown": ("", 40),
         "ArrowUp": ("", 38), "ArrowLeft": ("", 37), "ArrowRight": ("", 39),
         "PageDown": ("", 34), "PageUp": ("", 33), "Tab": ("\t", 9)}  # fmt: skip


def chromium() -> str | None:
    """The program, where it is installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


class Browser:
    """One page."""

    def __init__(self, read: int, write: int) -> None:
        self.read, self.write = read, write
        self.held = b""
        self.number = 0
        self.session: str | None = None
        #: What the console said: errors, refusals of the policy, requests.
        self.said: list[dict[str, Any]] = []

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write, data) :]
        while True:
            answer = self.next()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self.said.append(answer)

    def next(self) -> dict[str, Any]:
        while b"\0" not in self.held:
            part = os.read(self.read, 1 << 20)
            assert part, "the browser has ended"
            self.held += part
        line, _, self.held = self.held.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found

    def open(self, url: str, width: int = 1440, height: int = 900, look: str = "light") -> None:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self.session = found["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{part}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": look}]
        self.ask("Emulation.setEmulatedMedia", features=features)
        self.ask("Page.navigate", url=url)
        self.until("document.documentElement?.dataset.first !== undefined")

    def value(self, expression: str) -> Any:
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True,
                         awaitPromise=True)  # fmt: skip
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        end = time.monotonic() + PATIENCE
        while not self.value(expression):
            assert time.monotonic() < end, (expression, self.troubles())
            time.sleep(0.05)

    def rest(self) -> None:
        """Wait until what was asked for is drawn."""
        wait = "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))"
        self.value(wait)

    def key(self, name: str, times: int = 1) -> None:
        text, code = _KEYS.get(name, (name, ord(name[0].upper())))
        shift = 8 if len(name) == 1 and name.isupper() else 0
        for _ in range(times):
            common = {"key": name, "windowsVirtualKeyCode": code, "modifiers": shift}
            self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
            self.ask("Input.dispatchKeyEvent", type="keyUp", **common)
        self.rest()

    def type(self, text: str) -> None:
        self.ask("Input.insertText", text=text)
        self.rest()

    def click(self, x: float, y: float, count: int = 1) -> None:
        for turn in range(1, count + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                         clickCount=turn)  # fmt: skip
        self.rest()

    def press(self, selector: str) -> None:
        """Click what a selector finds."""
        place = self.value(
            f"(() => {{ const r = document.querySelector({json.dumps(selector)})"
            ".getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        self.click(*place)

    def text(self, selector: str) -> str:
        found = self.value(f"document.querySelector({json.dumps(selector)}).textContent")
        assert isinstance(found, str)
        return found

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))

    def troubles(self) -> list[str]:
        """Errors, refusals, and whatever was asked of a network."""
        found = []
        for event in self.said:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif method == "Log.entryAdded":
                found.append(params["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith(("file:", "about:")):
                    found.append(f"asks for {url[:100]}")
        return found


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with a fresh profile in a folder; it and all its helpers end with the block."""
    program = chromium()
    assert program is not None
    to_read, to_write = os.pipe(), os.pipe()
    ends = [str(to_write[0]), str(to_read[1])]
    command = [sys.executable, "-c", _LAUNCH, *ends, program, *_FLAGS, f"--user-data-dir={folder}"]
    with open(os.devnull, "wb") as nowhere:
        process = subprocess.Popen(
            command,
            pass_fds=(to_write[0], to_read[1]),
            stdin=subprocess.DEVNULL,
            stdout=nowhere,
            stderr=nowhere,
            start_new_session=True,
        )
    os.close(to_write[0])
    os.close(to_read[1])
    try:
        yield Browser(to_read[0], to_write[1])
    finally:
        os.close(to_write[1])
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(to_read[0])
