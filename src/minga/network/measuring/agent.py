"""``python -m minga.network.measuring.agent``: an agent on a host, told by lines of JSON what to measure.

It listens to standard input and answers on standard output, and it ends as soon as its standard input does, whatever
it is doing: when whoever measures goes away, nothing stays behind.
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
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print must not come between the answers
    orders: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(sys.stdin, orders), daemon=True).start()
    worker = Worker()
    _say(answers, {"greeting": GREETING, **worker.do({"do": "identity"})})
    while True:
        order = orders.get()
        before = clocks()
        try:
            reply = worker.do(order)
        except Exception as error:  # whatever it is, the other side can say where it happened
            reply = {"failed": f"{type(error).__name__}: {error}", "remedy": None, "unavailable": False}
        _say(answers, {"reply": reply, "number": order.get("number"), "clocks": [before, clocks()]})


def _listen(lines: TextIO, orders: queue.Queue[dict[str, Any]]) -> None:
    try:
        for line in lines:
            orders.put(json.loads(line))
    finally:
        os._exit(0)  # also out of a wait for a peer that will never answer


def _say(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")


if __name__ == "__main__":
    sys.exit(main())
