"""Measuring agent on a host (``python -m minga.network.measuring.agent``), controlled by lines of JSON.

It reads orders from standard input and replies on standard output. It ends as soon as its standard input is closed,
whatever it is doing, so that nothing is left behind when the measuring process ends.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from typing import Any, TextIO

from minga.network.measuring.environment import clocks
from minga.network.measuring.worker import Worker

__all__ = ["GREETING", "main"]

GREETING = "minga-agent"


def main() -> int:
    """Serve orders until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of libraries must not mix with the replies
    orders: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(sys.stdin, orders), daemon=True).start()
    worker = Worker()
    _say(answers, {"greeting": GREETING, **worker.do({"do": "identity"})})
    while True:
        order = orders.get()
        before = clocks()
        try:
            reply = worker.do(order)
        except Exception as error:  # any error is reported, so that the other side can name the host
            reply = {"failed": f"{type(error).__name__}: {error}", "remedy": None, "unavailable": False}
        _say(answers, {"reply": reply, "number": order.get("number"), "clocks": [before, clocks()]})


def _listen(lines: TextIO, orders: queue.Queue[dict[str, Any]]) -> None:
    try:
        for line in lines:
            orders.put(json.loads(line))
    finally:
        os._exit(0)  # also leaves a wait for a peer that would never answer


def _say(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")


if __name__ == "__main__":
    sys.exit(main())
