"""A script of Devito's environment, kept alive so that it takes turns with minga."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.waves.devito import PYTHON, installed

__all__ = ["Ask", "peer"]

SCRIPTS = Path(__file__).parent / "scripts"
Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Function that sends a line of JSON and returns the answer to it."""


@contextmanager
def peer(script: str, *arguments: str) -> Iterator[Ask | None]:
    """Run a script with one thread; None where Devito is not installed."""
    if not installed():
        yield None
        return
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [str(PYTHON), str(SCRIPTS / script), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=errors, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip

        def ask(question: Mapping[str, Any]) -> Mapping[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                errors.seek(0)
                raise SystemExit(f"Devito ended with status {process.wait()}:\n{errors.read()[-4000:]}")
            answer: Mapping[str, Any] = json.loads(line)
            return answer

        try:
            yield ask
        finally:
            process.communicate()
