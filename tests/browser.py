"""A headless Chromium that a test drives: pages are opened, expressions evaluated, pictures taken.

It speaks the DevTools protocol (chromedevtools.github.io/devtools-protocol) over the two pipes of
``--remote-debugging-pipe``: JSON messages that end with a zero byte.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SILENT = ("--headless", "--hide-scrollbars", "--no-first-run", "--disable-extensions", "--mute-audio")
# WebGL is computed by the processor, where Chromium has a renderer for it, and nothing moves by itself.
DRAWN = ("--force-prefers-reduced-motion", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")

# The browser reads orders from file 3 and writes answers to file 4.
PIPES = """\
import fcntl, os, sys
_, orders, answers, *words = sys.argv
for number, pipe in enumerate([fcntl.fcntl(int(pipe), fcntl.F_DUPFD, 10) for pipe in (orders, answers)], start=3):
    os.dup2(pipe, number)
os.execvp(words[0], words)
"""


KEYS = {
    "Tab": (9, ""), "Escape": (27, ""), "Enter": (13, "\r"), " ": (32, " "), "ArrowLeft": (37, ""), "ArrowUp": (38, ""),
    "ArrowRight": (39, ""), "ArrowDown": (40, ""), "Home": (36, ""),
}  # fmt: skip
FOCUSED = """(() => {
  const one = document.activeElement;
  if (!one || one === document.body || one === document.documentElement) return null;
  const box = one.getBoundingClientRect(), style = getComputedStyle(one);
  return {
    kind: one.type || one.tagName.toLowerCase(), id: one.id,
    name: one.getAttribute("aria-label") || one.labels?.[0]?.textContent.trim() || one.textContent.trim(),
    place: [...document.querySelectorAll("*")].indexOf(one),
    seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1 && box.width > 0 && box.height > 0,
    top: Math.round(box.top + scrollY), inside: box.left >= 0 && box.right <= innerWidth,
  };
})()"""


class Page:
    """One open page."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        said = self._browser.call(
            "Runtime.evaluate", self._session, expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in said, said["exceptionDetails"]
        return said["result"].get("value")

    def until(self, expression: str, seconds: float = 120.0) -> Any:
        """Wait for an expression to become true; its value. Long enough for a machine that does other things too."""
        end = time.monotonic() + seconds
        while not (value := self.evaluate(expression)):
            if time.monotonic() > end:
                pytest.fail(f"not within {seconds} s: {expression}\n{self.evaluate('document.body?.innerText')}")
            time.sleep(0.1)
        return value

    def press(self, key: str) -> None:
        """Press and release a key, such as ``Tab``, ``ArrowLeft`` or a character."""
        code, text = KEYS.get(key, (ord(key[0].upper()), key))
        words = {"key": key, "windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code}
        self._browser.call("Emulation.setFocusEmulationEnabled", self._session, enabled=True)
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self._browser.call("Input.dispatchKeyEvent", self._session, type=kind, **words, **more)

    def stops(self, most: int = 60) -> list[dict[str, Any]]:
        """Return the elements that Tab focuses, in order.

        Each has a kind, a name for screen readers, a place in the page, and whether its focus is visible.
        """
        found: list[dict[str, Any]] = []
        self.evaluate("document.activeElement.blur()")
        for _ in range(most):
            self.press("Tab")
            stop = self.evaluate(FOCUSED)
            if stop is None or stop in found:
                break
            found.append(stop)
        return found

    def unnamed(self) -> list[str]:
        """Return the roles of focusable elements without a name for screen readers."""
        tree = self._browser.call("Accessibility.getFullAXTree", self._session)["nodes"]
        found = []
        for node in tree:
            able = any(p["name"] == "focusable" and p["value"]["value"] for p in node.get("properties", ()))
            if able and node["role"]["value"] != "RootWebArea" and not node.get("name", {}).get("value", "").strip():
                found.append(node["role"]["value"])
        return found

    def picture(self, path: Path) -> None:
        """Keep what the page looks like as PNG."""
        said = self._browser.call("Page.captureScreenshot", self._session, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(said["data"]))

    def emulate(self, scheme: str) -> None:
        """Prefer ``light`` or ``dark``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._browser.call("Emulation.setEmulatedMedia", self._session, features=features)


class Browser:
    """A running Chromium."""

    def __init__(self, orders: int, answers: int) -> None:
        self._orders, self._answers = os.fdopen(orders, "wb", buffering=0), os.fdopen(answers, "rb", buffering=0)
        self._number, self._read = 0, b""

    def open(self, address: str, width: int = 1280, height: int = 1000) -> Page:
        """Open a page of its own."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", session, **size)
        self.call("Page.navigate", session, url=address)
        page = Page(self, session)
        page.until("location.href !== 'about:blank' && document.readyState === 'complete'")
        return page

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Give one order and wait for its answer; events that come meanwhile are dropped."""
        self._number += 1
        order = {"id": self._number, "method": method, "params": parameters}
        self._orders.write(json.dumps(order | ({"sessionId": session} if session else {})).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            pass
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            more = self._answers.read(1 << 16)
            assert more, "the browser ended"
            self._read += more
        message, _, self._read = self._read.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def close(self) -> None:
        """Let go of the pipes; the browser ends when it notices."""
        self._orders.close()
        self._answers.close()


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A browser for the length of a ``with`` block; the test is skipped where none is installed."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium here; install the Debian package chromium to run this test")
    read_orders, orders = os.pipe()
    answers, write_answers = os.pipe()
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as profile:
        words = [program, *SILENT, *DRAWN, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        if os.geteuid() == 0:
            words.insert(1, "--no-sandbox")  # its sandbox refuses to run as root
        process = subprocess.Popen(
            [sys.executable, "-c", PIPES, str(read_orders), str(write_answers), *words],
            pass_fds=(read_orders, write_answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(read_orders)
        os.close(write_answers)
        browser = Browser(orders, answers)
        try:
            yield browser
        finally:
            browser.close()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
