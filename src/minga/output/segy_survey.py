"""A SEG-Y file of many shots that is written shot by shot, in any order, and can be continued.

The place of each shot in the file is known beforehand. Until all shots are there, the file is beside its final name,
with a list of the finished shots and the digests of their bytes; what is listed and intact is not computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.output.directory import disk_errors, write_whole
from minga.output.segy import file_head, trace_bytes

__all__ = ["SegySurvey", "shots_there", "unfinished"]

_HEADER = 240


class SegySurvey:
    """A file of shots in the order of their numbers, sorted by sources.

    Parameters
    ----------
    path
        The file, which appears under this name when all shots are there.
    traces
        Number of traces of each shot.
    samples
        Samples of each trace.
    interval
        Seconds between samples.
    about
        What determines the shots, as JSON: shots of another one are not continued.
    text
        Lines of the textual header.

    Raises
    ------
    CaseError
        If the file exists, the format cannot hold the traces, or an unfinished file belongs to another survey.
    RunError
        If the disk fails.
    """

    def __init__(
        self, path: Path, traces: Sequence[int], samples: int, interval: float, about: object, text: Sequence[str] = ()
    ) -> None:
        if path.exists():
            raise CaseError(f"{path} exists already", key="file", remedy="name another file, or remove it")
        if not path.parent.is_dir():
            raise CaseError(f"the directory {str(path.parent)!r} does not exist", key="file")
        self.path = path
        self.traces = list(traces)
        self.samples, self.interval = samples, interval
        self._partial, self._list = unfinished(path)
        length = _HEADER + 4 * samples
        same = self.traces[0] if len(set(self.traces)) == 1 and self.traces[0] <= 32767 else 0
        head = file_head(samples, interval, text, same, sorting=5)
        self._starts = (len(head) + length * np.concatenate([[0], np.cumsum(self.traces)])).tolist()
        self.finished: set[int] = set()
        digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode() + head).hexdigest()
        with disk_errors(path):
            if self._begun():
                self._continue(digest)
            else:
                with self._partial.open("wb") as stream:
                    stream.write(head)
                    stream.truncate(self._starts[-1])
                write_whole(self._list, json.dumps({"survey": digest}) + "\n")

    def _begun(self) -> bool:
        """Return whether there is the beginning of a survey: a list without a whole first line lists no shot."""
        if not (self._list.exists() and self._partial.exists()):
            return False
        return bool(_entry(self._list.read_text().partition("\n")[0]))

    def _continue(self, digest: str) -> None:
        """Note the shots that are listed as finished and have the bytes that they should."""
        first, *others = map(_entry, self._list.read_text().splitlines())
        if first.get("survey") != digest:
            raise CaseError(
                f"{self._partial.name} beside {self.path.name} is the beginning of another survey",
                key="file",
                remedy=f"name another file, or remove {self._partial} and {self._list}",
            )
        known = {each["shot"]: each for each in others if each.get("shot") in range(len(self.traces))}
        with self._partial.open("rb") as stream:
            for number, entry in known.items():
                stream.seek(self._starts[number])
                found = stream.read(self._starts[number + 1] - self._starts[number])
                if hashlib.sha256(found).hexdigest() == entry.get("digest"):
                    self.finished.add(number)
        lines = [first, *(known[number] for number in sorted(self.finished))]
        write_whole(self._list, "".join(json.dumps(line) + "\n" for line in lines))

    def write(self, shot: int, traces: NDArray[Any], headers: Mapping[str, Any]) -> None:
        """Write a shot.

        Parameters
        ----------
        shot
            Number of the shot, from 0.
        traces
            Samples, one row for each trace.
        headers
            Entries of trace headers by the names of `minga.output.segy.TRACE_KEYS`; the numbers of traces and of
            the shot are added.
        """
        count = self.traces[shot]
        number, before = np.arange(1, count + 1), sum(self.traces[:shot])
        numbered = {
            "in_line": before + number, "in_file": before + number, "number": number, "record": shot + 1,
            "source_point": shot + 1, "shot_point": shot + 1, "shot_point_scale": 1,
        }  # fmt: skip
        content = trace_bytes(traces, self.interval, numbered | dict(headers))
        entry = json.dumps({"shot": shot, "digest": hashlib.sha256(content).hexdigest()})
        with disk_errors(self.path):
            with self._partial.open("r+b") as stream:
                stream.seek(self._starts[shot])
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            with self._list.open("a") as lines:
                lines.write(entry + "\n")
                lines.flush()
                os.fsync(lines.fileno())
        self.finished.add(shot)

    def finish(self) -> None:
        """Give the file its name; all shots must be there."""
        missing = [shot for shot in range(len(self.traces)) if shot not in self.finished]
        if missing:
            raise CaseError(f"{len(missing)} shots are missing in {self.path.name}, the first of them {missing[0]}")
        with disk_errors(self.path):
            self._partial.replace(self.path)
            self._list.unlink()


def unfinished(path: Path) -> tuple[Path, Path]:
    """Return the paths of the traces and of the list of shots of a file that is not complete."""
    return path.with_name(f".{path.name}.partial"), path.with_name(f".{path.name}.shots")


def shots_there(path: Path) -> int:
    """Return the number of shots that are listed as finished in a file that is not complete."""
    try:
        lines = unfinished(path)[1].read_text().splitlines()
    except OSError:
        return 0
    return len({_entry(line).get("shot") for line in lines} - {None})


def _entry(line: str) -> dict[str, Any]:
    """Return an entry of the list of shots; none for a line that was not written to its end."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
