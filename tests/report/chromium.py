"""Debian's Chromium over its debugging pipe, with nothing but the standard library: open a page, ask it, picture it."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SILENCE_S = 300.0


def find() -> str | None:
    """The browser's path: SPECMATRIX_CHROMIUM, or one of the usual names."""
    return os.environ.get("SPECMATRIX_CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)


class BrowserError(RuntimeError):
    """The browser did not answer, or answered with an error."""


class Chromium:
    """One browser with one page; a context manager that leaves nothing behind."""

    def __init__(self, path: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="specmatrix-chromium-", ignore_cleanup_errors=True)
        read_theirs, self._write = os.pipe()
        self._read, write_theirs = os.pipe()
        # The protocol wants descriptors 3 and 4: a shell puts them there, from numbers that do not collide.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (read_theirs, write_theirs)]
        command = [
            path, "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--hide-scrollbars",
            "--disable-dev-shm-usage", "--disable-background-networking", "--disable-extensions",
            "--force-color-profile=srgb", f"--user-data-dir={self._profile.name}", "about:blank",
        ]  # fmt: skip
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")
        shell = f'exec "$0" "$@" 3<&{ends[0]} 4>&{ends[1]} {ends[0]}<&- {ends[1]}>&-'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", shell, *command],
            pass_fds=ends, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        for end in (read_theirs, write_theirs, *ends):
            os.close(end)
        self._buffer, self._number = b"", 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        try:
            target = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
            attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
            self.call("Page.setLifecycleEventsEnabled", enabled=True)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the browser and everything it started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, 9)
            self._process.wait()
        for end in (self._read, self._write):
            if end >= 0:
                os.close(end)
        self._read = self._write = -1
        self._profile.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command and its answer; events that come in between are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + SILENCE_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            more = os.read(self._read, 1 << 20) if ready else b""
            if not more:
                raise BrowserError("the browser ended or was silent for five minutes")
            self._buffer += more
        line, self._buffer = self._buffer.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def open(self, page: Path, *, fragment: str = "") -> None:
        """Opens a file and waits until it has loaded."""
        # Another page first: a change of the fragment alone would load nothing.
        self._go("about:blank")
        self.events.clear()
        self._go(page.resolve().as_uri() + fragment)

    def _go(self, url: str) -> None:
        loader = self.call("Page.navigate", url=url)["loaderId"]
        while not any(
            one.get("method") == "Page.lifecycleEvent"
            and (one["params"]["name"], one["params"]["loaderId"]) == ("load", loader)
            for one in self.events
        ):
            self.events.append(self._next())

    def show(self, *, width: int, dark: bool, height: int = 900, scale: float = 1.0) -> None:
        """Size of the window and theme of the reader."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.call("Emulation.setEmulatedMedia", features=[theme, still])

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """One key, down and up."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, *, whole: bool = False) -> bytes:
        """A PNG of what is shown, or of the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def complaints(self) -> list[str]:
        """What the page logged: exceptions, policy violations, failed requests; and every request but the page's own."""
        found = []
        for one in self.events:
            parameters = one.get("params", {})
            if one.get("method") == "Log.entryAdded":
                found.append(str(parameters["entry"]["text"]))
            elif one.get("method") == "Runtime.exceptionThrown":
                found.append(str(parameters["exceptionDetails"].get("text")))
            elif one.get("method") == "Runtime.consoleAPICalled":
                found.append(f"console: {parameters['args']}")
            elif one.get("method") == "Network.requestWillBeSent" and not parameters["request"]["url"].startswith(
                "file:"
            ):
                found.append(f"request: {parameters['request']['url'][:80]}")
        return found
