"""Coverage-guided fuzzing of every target, one process each: `make fuzz`.

python -m fuzz.run --seconds 60 [NAME ...]

A target that raises anything but a MingaError, hangs for ten seconds or takes more than two gigabytes ends the run with
the input in a file.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

MEGABYTES = 2048
PATIENCE = 10


def fuzz(name: str, seconds: int) -> None:
    """Feed one target for so long; does not return."""
    import atheris

    with atheris.instrument_imports(include=["minga"]):
        from fuzz.targets import TARGETS

    target, seeds = TARGETS[name]
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    for number, seed in enumerate(seeds):
        (folder / f"seed{number}").write_bytes(seed)
    limits = [f"-max_total_time={seconds}", f"-timeout={PATIENCE}", f"-rss_limit_mb={MEGABYTES}", "-max_len=400"]
    options = [f"-artifact_prefix={folder}/", *limits]
    atheris.Setup([sys.argv[0], str(folder), *options], target)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.run")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--one", action="store_true", help="fuzz the named target in this process")
    options = parser.parse_args()
    if options.one:
        fuzz(options.names[0], options.seconds)
    from fuzz.targets import TARGETS

    failed = []
    for name in options.names or TARGETS:
        print(f"{name} ...", flush=True)
        command = [sys.executable, "-m", "fuzz.run", "--one", "--seconds", str(options.seconds), name]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        last = [line for line in done.stderr.splitlines() if line.startswith("#")][-1:]
        print(f"  {'passed' if done.returncode == 0 else 'FAILED'} {' '.join(last)}", flush=True)
        if done.returncode:
            told = [line for line in done.stderr.splitlines() if not line.startswith(("#", "INFO", "0x"))]
            print(*done.stdout.splitlines()[-25:], *told[-12:], sep="\n", flush=True)
            failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
