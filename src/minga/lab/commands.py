"""Running the system's own tools, and what their failures mean for a person."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from minga.errors import LaunchError

__all__ = ["check_tools", "collect", "detached", "interruptible", "lent", "output", "uninterrupted"]

_TOOLS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "taskset": "util-linux",
    "mount": "mount",
    "hostname": "hostname",
}
_PLACES = "/usr/local/sbin:/usr/sbin:/sbin"
_LIMIT = 60.0

_detached: list[subprocess.Popen[str]] = []

lent: list[int] = []
"""Files that the tools keep open too: a lock stays until the last tool has ended, even if this process is killed."""


def check_tools() -> None:
    """LaunchError unless the programs are there that make namespaces and links."""
    if sys.platform != "linux":
        raise LaunchError(f"a lab needs Linux, and this is {sys.platform}", remedy="use it in a virtual machine")
    missing = [tool for tool in _TOOLS if shutil.which(tool, path=environment()["PATH"]) is None]
    if missing:
        packages = sorted({_TOOLS[tool] for tool in missing})
        raise LaunchError(
            f"a lab needs the program{'s' if len(missing) > 1 else ''} {', '.join(missing)}",
            remedy=f"install the package {' and '.join(packages)} (apt-get install {' '.join(packages)})",
        )


def environment() -> dict[str, str]:
    """The environment for these tools: those for administrators are not on everybody's PATH."""
    return {**os.environ, "PATH": f"{os.environ.get('PATH', '/usr/bin:/bin')}:{_PLACES}", "LC_ALL": "C"}


def output(words: Sequence[str], text: str = "") -> str:
    """What a tool prints, given ``text`` as input. LaunchError where it fails. A Ctrl-C does not reach it."""
    try:
        done = subprocess.run(
            words,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT,
            check=False,
            env=environment(),
            start_new_session=True,
            pass_fds=lent,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchError(f"{' '.join(words)} could not be run: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip() or f"status {done.returncode}"
        raise LaunchError(f"{' '.join(words)} failed: {said}", remedy=_remedy(said))
    return done.stdout


def detached(words: Sequence[str], **streams: Any) -> subprocess.Popen[str]:
    """A program that goes on after this process has ended; until then :func:`collect` takes notice of its end."""
    child = subprocess.Popen(
        words, text=True, errors="replace", env=environment(), cwd="/", start_new_session=True, **streams
    )
    _detached.append(child)
    return child


def collect() -> None:
    """Forget detached programs that have ended; else they would be listed as defunct as long as this process lives."""
    _detached[:] = [child for child in _detached if child.poll() is None]


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Requests to end (SIGTERM, SIGHUP) become a KeyboardInterrupt, as Ctrl-C is, so that all is removed.

    Its argument is the number of the signal; that of a Ctrl-C has none.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt(number)

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        _restore(before)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Requests to end wait until the block is done: removing must not stop half-way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda n, _: came.append(n)) for number in numbers}
    try:
        yield
    finally:
        _restore(before)
    if came:
        signal.raise_signal(came[0])


def _restore(before: Mapping[signal.Signals, Any]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)


def _remedy(said: str) -> str | None:
    low = said.lower()
    if "not permitted" in low or "permission denied" in low:
        return "run as root, or as a user who may make user namespaces; in a container, give it CAP_SYS_ADMIN"
    if "unknown device type" in low or "unknown qdisc" in low or "not supported" in low:
        return "this kernel lacks veth, bridge or tbf: load the modules veth, bridge and sch_tbf"
    return None
