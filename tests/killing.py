"""Kills runs at random moments and resumes them: ``python killing.py CASE FOLDER SEED KILLS``; prints JSON.

A process of its own that has imported everything once: runs are forks of it, so that most of their life is the run.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path


def fork(words: Sequence[str], log: Path) -> int:
    """Start ``minga WORDS`` as a child; its process number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.argv = ["minga", *words]
        from minga.cli.main import main

        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
    finally:
        os._exit(status)


def left(run: Path) -> dict[str, str]:
    """What must be the same: every file of the store, the series, the digest, the observables, why it ended."""
    files = [*sorted(path for path in (run / "fields.zarr").rglob("*") if path.is_file()), run / "series.json"]
    found = {str(file.relative_to(run)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    result = json.loads((run / "result.json").read_text())
    return {**found, **{name: json.dumps(result[name]) for name in ("digest", "observables", "ended", "steps")}}


def main(case: str, folder: Path, seed: int, kills: int) -> dict[str, object]:
    import minga.cli.perform
    import minga.output.snapshots.snapshots  # noqa: F401 - so that children have them

    chance, log = random.Random(seed), folder / "log"
    reference, run = folder / "reference", folder / "run"
    os.waitpid(fork(["run", case, "--out", str(folder / "first")], log), 0)  # kernels are compiled
    began = time.monotonic()
    _, status = os.waitpid(fork(["run", case, "--out", str(reference)], log), 0)
    assert status == 0, log.read_text()
    longest = 1.1 * (time.monotonic() - began)
    expected = left(reference)
    done = resumed = complete = 0
    differing: list[str] = []
    while done < kills or run.exists() or not complete:  # the last kill may come before there is a run
        if not (run / "case.toml").exists():
            shutil.rmtree(run, ignore_errors=True)
        words = ["--resume", str(run)] if run.exists() else [case, "--out", str(run)]
        log.unlink()
        resumed += run.exists()
        child = fork(["run", *words], log)
        end = time.monotonic() + chance.uniform(0.0, longest)
        ended, status = 0, 0
        while not ended and (done >= kills or time.monotonic() < end):
            ended, status = os.waitpid(child, os.WNOHANG)
            time.sleep(0.001)
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            done += 1
        elif status == 0 or "is finished" in log.read_text():  # killed between its result and its end
            found = left(run)
            differing += [name for name in {**expected, **found} if expected.get(name) != found.get(name)]
            shutil.rmtree(run)
            complete += 1
        else:
            return {"failed": log.read_text()[-3000:]}
    return {"kills": done, "resumed": resumed, "complete": complete, "differing": differing, "seconds": longest}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))))
