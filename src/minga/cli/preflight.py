"""Notes that are shown before a run starts, for models that have notes of their own: see ``Model.notes``.

Added to the notes of the model are memory by field, bytes written to disk, and lower bounds of the times for computing
and writing, from the copy rate of this machine's memory and from a short write test in the directory of the run.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from minga.cli.case import Case
from minga.errors import CaseError
from minga.lang.types import itemsize
from minga.output.directory import RunDirectory, write_whole
from minga.output.disk_space import bytes_of_frame, check_room, frames_of, need_of
from minga.plan.step_costs import step_costs
from minga.view.amounts import bytes_text, seconds_text

__all__ = ["announce", "notes_before", "table_of", "text_of", "write_rate"]

_NAMED: Final = 4
"""Most fields that are named one by one, the largest first."""

_PROBE: Final = (1 << 20, 1 << 24)
"""Fewest and most bytes that are written to measure the speed of a disk."""


def notes_before(case: Case, ranks: int, place: Path | None, a_step: float | None = None) -> list[tuple[str, str]]:
    """Return the notes on a run, as pairs of a name and a text; none for a model without notes of its own.

    Parameters
    ----------
    case
        The case.
    ranks
        Number of ranks.
    place
        A directory on the disk that frames will be written to; None leaves out the time for writing.
    a_step
        Seconds that a plan predicts for a step; None estimates them from speeds measured before and from memory.
    """
    if not case.model.notes:
        return []
    found = [*case.model.notes, *_unused_time(case), ("grid", _grid(case)), ("memory", _memory(case))]
    frames = frames_of(case.run.steps, case.output.every, case.run.until)
    written = round(frames * bytes_of_frame(case.fields, case.output) * _finer(case))
    found.append(("to disk", f"{frames} frames, {bytes_text(written)}" + _unlike(case)))
    if a_step is None:
        found.extend(_computing(case, ranks))
    else:
        found.append(("computing", f"{case.run.steps} steps, {seconds_text(case.run.steps * a_step)} as planned"))
    if place is not None and written:
        rate = write_rate(place, written)
        if rate is not None:
            found.append(
                ("writing", f"about {seconds_text(written / rate)} at {bytes_text(rate)}/s here, during computation")
            )
    return found


def announce(case: Case, ranks: int, directory: RunDirectory) -> None:
    """Print the notes on a run to standard error, and write them into its directory.

    Raises
    ------
    CaseError
        If the disk has no room for the frames.
    """
    need = need_of(directory, case.model, case.fields, case.options)
    warning = check_room(directory.path, need, "output.every")
    notes = notes_before(case, ranks, directory.path)
    if notes:
        write_whole(directory.preflight, table_of(notes))
        sys.stderr.write(f"{case.name}, before it starts\n{text_of(notes)}\n")
    for text in case.model.warnings:
        sys.stderr.write(f"warning: {text}\n")
    if warning is not None:
        sys.stderr.write(warning + "\n")


def table_of(notes: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the texts by name; names that occur again are numbered, such as "warning 2"."""
    count: Counter[str] = Counter()
    table = {}
    for what, value in notes:
        count[what] += 1
        table[what if count[what] == 1 else f"{what} {count[what]}"] = value
    return table


def text_of(notes: Sequence[tuple[str, str]]) -> str:
    """Format pairs of a name and a text as aligned lines."""
    width = max(len(what) for what, _ in notes)
    return "\n".join(f"  {what:{width}s}  {value}" for what, value in notes)


def write_rate(place: Path, most: int) -> float | None:
    """Measure the bytes per second that a directory's disk accepts; None if it cannot be written.

    The test writes about ``most`` bytes, but at least 1 MiB and at most 16 MiB.
    """
    size = min(max(most, _PROBE[0]), _PROBE[1])
    probe = place / f".probe-{os.getpid()}"
    block = os.urandom(1 << 20)
    try:
        began = time.perf_counter()
        with probe.open("wb") as stream:
            for _ in range(size >> 20):
                stream.write(block)
            stream.flush()
            os.fsync(stream.fileno())
        return (size >> 20 << 20) / (time.perf_counter() - began)
    except OSError:
        return None
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)


def _unused_time(case: Case) -> Iterator[tuple[str, str]]:
    """Yield a note if run.steps differs from the number of steps of the model; run.steps has precedence."""
    wanted, steps = case.model.steps, case.run.steps
    if wanted is not None and wanted != steps and case.run.until is None:
        yield ("steps", f"{steps:,} as run.steps says, instead of the {wanted:,} that the model's end time would need")


def _grid(case: Case) -> str:
    shape = case.model.stands_for or case.model.grid.shape
    cells = f"{math.prod(shape):,} cells"
    return cells if len(shape) == 1 else f"{' x '.join(map(str, shape))} = {cells}"


def _memory(case: Case) -> str:
    finer = _finer(case)
    sizes = {f.name: round(f.slots * f.bounds.size * itemsize(f.dtype) * finer) for f in case.model.fields}
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))
    named = ", ".join(f"{name} {bytes_text(sizes[name])}" for name in largest[:_NAMED])
    rest = sum(sizes[name] for name in largest[_NAMED:])
    return f"{bytes_text(sum(sizes.values()))}: {named}" + (f", others {bytes_text(rest)}" if rest else "")


def _finer(case: Case) -> float:
    """Return the number of cells for which each cell of the model stands."""
    return math.prod(case.model.stands_for or case.model.grid.shape) / case.model.grid.size


def _unlike(case: Case) -> str:
    return "" if case.output.codec == "none" else " before compression"


def _computing(case: Case, ranks: int) -> Iterator[tuple[str, str]]:
    """Yield an estimate of the run time: a lower bound from the copy rate of memory, and from known speeds if any."""
    from minga.view.report.bound import copy_rate

    costs = step_costs(case.model)
    if not costs["bytes_per_cell"]:
        return
    a_cell = f"{costs['bytes_per_cell']:.0f} bytes and {costs['flops_per_cell']:.0f} operations a cell"
    known = _known_step(case, ranks)
    about = "" if known is None else f"about {seconds_text(case.run.steps * known[0])} by {known[1]}"
    if case.machine is not None and known is not None:  # the memory of this machine does not matter then
        yield "computing", f"{case.run.steps} steps, {about}: {a_cell}"
        return
    workers = max(1, ranks * case.run.threads)
    rate = copy_rate(int(costs["field_bytes"]) // workers, min(workers, os.cpu_count() or 1))
    least = case.run.steps * costs["bytes_per_cell"] * case.model.grid.size / rate
    found = ", ".join(filter(None, [f"{case.run.steps} steps", about, f"at least {seconds_text(least)}"]))
    yield "computing", f"{found}: {a_cell}, {bytes_text(rate)}/s of memory"


def _known_step(case: Case, ranks: int) -> tuple[float, str] | None:
    """Return the seconds of a step without messages, and their source: the machine file, or earlier measurements."""
    from minga.plan.probe.probe import known_speed

    cells = case.model.planned_grid.size
    computing = max(1, ranks - case.output.writers)
    if case.run.device != "cpu":
        return None
    if case.machine is not None:
        from minga.plan.cost import work_of
        from minga.plan.machine.machine import read_machine

        work = work_of(case.model)
        machine = read_machine(case.machine)
        try:
            group = machine.rank_group(
                computing, (work.kernel, work.name), case.run.threads, cell_bytes=work.moved or None
            )
        except CaseError:
            return None  # planning reports the error
        rates = [float(group.speeds[number].rate(cells / computing)) for number in group.speed_of]
        return cells / sum(rates), f"the speeds in {machine.name or case.machine.name}"
    speed = known_speed(case.model, computing, case.run.threads)
    return None if speed is None else (float(speed.time(cells / computing)), "speeds measured here before")
