"""Cells that are set between steps: by pages while a run continues, and again from the record."""

from __future__ import annotations

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import minga as mg
from minga.output import edits
from minga.output.directory import RunDirectory
from minga.output.edits import MOST, Canvas, append_line, read_edits
from minga.view.live.state import RunReader

SHAPE = (20, 130)
BLOCK = [[9, 63, 1], [9, 64, 1], [10, 63, 1], [10, 64, 1]]
EDITS = [
    {"step": 0, "field": "cell", "cells": [[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]]},
    {"step": 3, "field": "cell", "cells": BLOCK},
    {"step": 3, "field": "cell", "cells": [[9, 63, 0], [9, 63, 1], [0, 0, 0]]},
    {"step": 7, "field": "cell", "cells": [[19, 129, 1], [19, 128, 1], [18, 129, 1]]},
]


def life(cells: NDArray[Any]) -> NDArray[Any]:
    near = sum(np.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - cells
    return ((near == 3) | ((near == 2) & (cells == 1))).astype(np.uint8)


def by_hand(steps: int, edits: list[dict[str, Any]] = EDITS) -> list[NDArray[Any]]:
    cells = np.random.default_rng(5).integers(0, 2, SHAPE, np.uint8)
    seen = [cells]
    for step in range(steps):
        cells = cells.copy()
        for edit in edits:
            for row, column, state in edit["cells"] if edit["step"] == step else ():
                cells[row, column] = state
        cells = life(cells)
        seen.append(cells)
    return seen


def model(**more: Any) -> mg.Model:
    given = {"init": by_hand(0)[0], "boundary": "periodic"} | more
    return mg.automaton("B3/S23", SHAPE, **given)


def written(folder: Path, edits: list[dict[str, Any]] = EDITS) -> str:
    path = folder / "given.jsonl"
    path.write_text("".join(json.dumps(edit) + "\n" for edit in edits))
    return str(path)


@pytest.mark.parametrize("storage", ["bytes", "bits"])
def test_edits_take_place_between_steps(storage: str, tmp_path: Path) -> None:
    run = mg.run(model(storage=storage), steps=10, every=1, edits=written(tmp_path))
    assert np.array_equal(run.cell.values, by_hand(10))
    assert (run.attrs["edits"], run.attrs["edited_cells"]) == (4, 14)


def test_edits_do_not_depend_on_ranks_storage_and_halos(tmp_path: Path) -> None:
    path = written(tmp_path)

    def digest(comm: Any = None, storage: str = "bytes", **options: Any) -> str:
        return str(mg.run(model(storage=storage), steps=12, edits=path, comm=comm, **options).digest)

    alone = digest()
    assert alone != str(mg.run(model(), steps=12).digest)
    for storage in ("bytes", "bits"):
        for ranks, options in [(3, {}), (4, {"halo_depth": 3, "threads": 2})]:
            assert set(mg.run_virtual(ranks, lambda comm: digest(comm, storage, **options))) == {alone}


class Painter(mg.Observer):
    """A page that wishes for cells after some steps."""

    schedule = mg.Schedule(steps=1)

    def __init__(self, directory: Path, wishes: dict[int, bytes]) -> None:
        self.reader, self.wishes, self.said = RunReader(RunDirectory(directory)), wishes, []

    def observe(self, simulation: mg.Simulation) -> None:
        if simulation.rank == 0 and simulation.step in self.wishes:
            self.said.append(self.reader.paint(self.wishes[simulation.step]))


def wish(cells: list[list[int]]) -> bytes:
    return json.dumps({"field": "cell", "cells": cells}).encode()


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_painted_run_is_repeated_from_its_record(ranks: int, tmp_path: Path) -> None:
    out = tmp_path / "painted"
    painter = Painter(out, {2: wish(BLOCK), 3: b"nonsense", 5: wish([[99, 0, 1]]), 6: wish([[0, 0, 1], [19, 129, 1]])})

    def painted(comm: Any = None) -> str:
        options = {"out": out, "paint": True, "observers": [painter], "comm": comm}
        return str(mg.run(model(), steps=60, **options).digest)

    found = painted() if ranks == 1 else mg.run_virtual(ranks, painted)[0]
    assert [said is None for said in painter.said] == [True, False, False, True]
    edits = [json.loads(line) for line in (out / "edits.jsonl").read_text().splitlines()]
    assert [sorted(edit["cells"]) for edit in edits] == [sorted(BLOCK), [[0, 0, 1], [19, 129, 1]]]
    assert not (out / "painting.jsonl").exists()
    assert str(mg.run(model(), steps=60, edits=str(out / "edits.jsonl")).digest) == found
    assert np.array_equal(mg.open(out).cell.values[-1], by_hand(60, edits)[-1])
    assert painter.reader.paint(wish(BLOCK)) is not None


@pytest.mark.parametrize("paint", [True, False])
@pytest.mark.parametrize("left", [b"", b'{"step":29,"field":"cell","cells":[[0,0'])
def test_a_resumed_run_repeats_what_was_painted_after_its_checkpoint(left: bytes, paint: bool, tmp_path: Path) -> None:
    """Even if pages may paint no longer, or a process that was killed left part of a line."""
    out, record = tmp_path / "run", tmp_path / "run" / "edits.jsonl"
    first = {"out": out, "checkpoint": 16}
    with pytest.raises(ZeroDivisionError):
        mg.run(model(), steps=40, paint=True, observers=[Painter(out, {20: wish(BLOCK)}), Broken()], **first)
    edits = [json.loads(line) for line in record.read_text().splitlines()]
    assert len(edits) == 1
    with record.open("ab") as lines:
        lines.write(left)
    more = [Painter(out, {20: wish([[3, 3, 1], [3, 4, 1], [3, 5, 1]])})] if paint else []
    run = mg.run(model(), steps=40, resume=True, paint=paint, observers=more, **first)
    edits = [json.loads(line) for line in record.read_text().splitlines()]
    assert len(edits) == run.attrs["edits"] == 1 + paint
    assert np.array_equal(run.cell.values[-1], by_hand(40, edits)[-1])


def test_the_record_of_a_painted_run_begins_with_the_edits_that_it_was_given(tmp_path: Path) -> None:
    out = tmp_path / "run"
    settings = {"out": out, "checkpoint": 16, "paint": True, "edits": written(tmp_path)}
    with pytest.raises(ZeroDivisionError):
        mg.run(model(), steps=40, observers=[Painter(out, {20: wish(BLOCK)}), Broken()], **settings)
    run = mg.run(model(), steps=40, resume=True, **settings)
    edits = [json.loads(line) for line in (out / "edits.jsonl").read_text().splitlines()]
    assert edits[:-1] == EDITS
    assert sorted(edits[-1]["cells"]) == sorted(BLOCK)
    assert np.array_equal(run.cell.values[-1], by_hand(40, edits)[-1])


def test_edits_that_cannot_be_recorded_are_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(record: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    path = tmp_path / "edits.jsonl"
    append_line(path, EDITS[0], lasting=True)
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        append_line(path, EDITS[1], lasting=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_person_is_told_of_edits_that_cannot_be_recorded(
    ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the page, in the terminal and with the result; the next edit is made if there is room again."""
    out = tmp_path / "run"
    painter = Painter(out, {20: wish(BLOCK), 40: wish([[0, 0, 1]])})
    seen = []

    def keep(path: Path, entry: Any, **options: Any) -> None:
        if len(entry["cells"]) == len(BLOCK):
            raise OSError(errno.ENOSPC, "No space left on device")
        append_line(path, entry, **options)

    class Page(mg.Observer):
        schedule = mg.Schedule(steps=1)

        def observe(self, simulation: mg.Simulation) -> None:
            if simulation.rank == 0:
                state = painter.reader.state()["paint"]
                seen.append("" if state is None else state["refused"])

    monkeypatch.setattr("minga.running.painting.append_line", keep)

    def painted(comm: Any = None) -> Any:
        return mg.run(model(), steps=90, out=out, paint=True, observers=[painter, Page()], comm=comm)

    run = painted() if ranks == 1 else mg.run_virtual(ranks, painted)[0]
    edits = [json.loads(line) for line in (out / "edits.jsonl").read_text().splitlines()]
    assert [edit["cells"] for edit in edits] == [[[0, 0, 1]]]
    assert (run.attrs["edits"], run.attrs["unrecorded_cells"]) == (1, 4)
    text = "edits.jsonl cannot be written: No space left on device"
    assert capsys.readouterr().err.count(text) == 1
    first = next(step for step, said in enumerate(seen) if said)
    assert 20 < first < 40
    assert text in seen[first]
    assert seen[-1] == ""
    assert str(mg.run(model(), steps=90, edits=str(out / "edits.jsonl")).digest) == str(run.digest)


def test_what_a_process_left_of_a_line_does_not_spoil_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "edits.jsonl"
    append_line(path, EDITS[0])
    with path.open("ab") as lines:
        lines.write(b'{"step":1,"cells":[' + b"[0,0,1]," * 20_000)
    append_line(path, EDITS[1])
    assert [edit.line for edit in read_edits(path, Canvas(SHAPE, {"cell": 2}))] == EDITS[:2]
    assert path.read_bytes().count(b"\n") == 2


def test_lines_of_many_writers_are_whole(tmp_path: Path) -> None:
    """Also for those who read meanwhile."""
    path = tmp_path / "edits.jsonl"
    entry = {"step": 1, "field": "cell", "cells": [[0, 0, 1]] * 500}

    def write(number: int) -> None:
        for k in range(20):
            append_line(path, entry | {"step": 20 * number + k})

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(write, number) for number in range(8)]:
            while not done.done():
                if path.exists():
                    read_edits(path, Canvas(SHAPE, {"cell": 2}))
            done.result()
    assert [edit.step for edit in read_edits(path, Canvas(SHAPE, {"cell": 2}))] == list(range(160))


def test_edits_wake_cells_that_are_quiet(tmp_path: Path) -> None:
    """Tiles without changes are not computed until a cell in them is set."""
    still = np.zeros((128, 256), np.uint8)
    still[100:102, 200:202] = 1
    edits = [{"step": 30, "field": "cell", "cells": [[10, 63, 1], [10, 64, 1], [10, 65, 1]]}]
    runs = [
        mg.run(
            mg.automaton("B3/S23", still.shape, init=still, boundary="periodic", skip_quiet=skip),
            steps=35, edits=written(tmp_path, edits),
        )
        for skip in (True, False)
    ]  # fmt: skip
    assert runs[0].cell.values[-1].sum() == 7
    assert np.array_equal(runs[0].cell.values, runs[1].cell.values)


class Broken(mg.Observer):
    """An observer that fails at a step."""

    schedule = mg.Schedule(steps=30)

    def observe(self, simulation: mg.Simulation) -> None:
        raise ZeroDivisionError


def test_a_glider_that_is_painted_at_an_edge_is_reported(tmp_path: Path) -> None:
    """Checks of the edge would not have been due for many steps."""
    glider = [[1, 1, 1], [1, 2, 1], [1, 3, 1]]
    still = np.zeros((200, 200), np.uint8)
    still[100:102, 100:102] = 1
    quiet = mg.automaton("B3/S23", still.shape, init=still, boundary="fixed")
    path = written(tmp_path, [{"step": 2, "field": "cell", "cells": glider}])
    assert "edge_step" not in mg.run(quiet, steps=10).attrs
    assert mg.run(quiet, steps=10, edits=path).attrs["edge_step"] == 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"step": 1, "field": "u", "cells": [[0, 0, 1]]}', "expected cell"),
        ('{"step": -1, "field": "cell", "cells": [[0, 0, 1]]}', "step"),
        ('{"step": true, "field": "cell", "cells": [[0, 0, 1]]}', "step"),
        ('{"step": 1, "field": "cell", "cells": []}', "1 to 4096"),
        ('{"step": 1, "field": "cell", "cells": [[0, 0]]}', "lists of 3"),
        ('{"step": 1, "field": "cell", "cells": [[0, 0, 0.5]]}', "lists of 3"),
        ('{"step": 1, "field": "cell", "cells": ["abc"]}', "lists of 3"),
        ('{"step": 1, "field": "cell", "cells": [[0, 0, 2]]}', "states"),
        ('{"step": 1, "field": "cell", "cells": [[20, 0, 1]]}', "grid"),
        ('{"step": 1, "field": "cell", "cells": [[0, -1, 1]]}', "grid"),
        ("[1]", "object"),
        ("nothing", "no JSON"),
        ("\xff", "no JSON"),
    ],
)
def test_lines_that_are_no_edits(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "edits.jsonl"
    path.write_bytes(json.dumps(EDITS[0]).encode() + b"\n" + line.encode("latin-1"))
    with pytest.raises(mg.CaseError, match=message) as found:
        read_edits(path, Canvas(SHAPE, {"cell": 2}))
    assert "line 2" in found.value.message
    with pytest.raises(mg.CaseError, match="line 2"):
        mg.run(model(), steps=1, edits=str(path))


def test_more_cells_than_an_edit_may_have() -> None:
    canvas = Canvas(SHAPE, {"cell": 2})
    entry = {"field": "cell", "cells": [[0, 0, 1]] * MOST}
    assert len(canvas.edit(entry, 0).states) == MOST
    with pytest.raises(ValueError, match="1 to"):
        canvas.edit({"field": "cell", "cells": [[0, 0, 1]] * (MOST + 1)}, 0)


def test_runs_that_cannot_be_edited(tmp_path: Path) -> None:
    path = written(tmp_path)
    plane = mg.automaton("B3/S23", None, init=[[1, 1], [1, 1]], boundary="unbounded")
    floats = mg.automaton(mg.rule(dtype="f8")(lambda cell, near: cell), SHAPE, init={"fill": 0.5})
    for other, options in [(plane, {}), (floats, {}), (model(), {"stop": {"period": 2}})]:
        with pytest.raises(mg.CaseError, match="cannot be set between steps") as found:
            mg.run(other, steps=2, edits=path, **options)
        assert found.value.key == "run.edits"
    with pytest.raises(mg.CaseError, match="cannot read"):
        mg.run(model(), steps=2, edits=str(tmp_path / "none"))


GRID = mg.Grid((4, 6))
SHADE = mg.Field("shade", GRID, "u1")


@pytest.mark.parametrize(
    ("paintable", "message"),
    [
        (("shade",), "paintable="),
        ({"shade": 1}, "paintable="),
        ({"shade": 257}, "2 to 256"),
        ({"shade": True}, "paintable="),
        ({"shade": 2.0}, "paintable="),
        ({"flag": 3}, "2 to 2"),
        ({"u": 2}, "whole number in each cell"),
        ({"row": 2}, "whole number in each cell"),
        ({"none": 2}, "no field 'none'"),
        ({7: 2}, "no field 7"),
    ],
)
def test_models_whose_cells_cannot_be_painted(paintable: Any, message: str) -> None:
    others = (mg.Field("u", GRID), mg.Field("flag", GRID, "bool"), mg.Field("row", GRID, "u1", axes=(1,)))
    fields = (SHADE, *others)
    assert mg.Model("m", GRID, fields, mg.Program("step"), paintable={"shade": 256, "flag": 2})
    with pytest.raises(mg.ProgramError) as found:
        mg.Model("m", GRID, fields, mg.Program("step"), paintable=paintable)
    assert message in str(found.value)


def test_without_locks_lines_that_others_add_meanwhile_remain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    def before_another_line(lines: Any) -> int:
        size = found(lines)
        with path.open("ab") as other:
            other.write(b'{"other": 1}\n')
        return size

    path, found = tmp_path / "painting.jsonl", edits._end_of_lines
    edits.append_line(path, {"first": 1})
    monkeypatch.setattr(edits.fcntl, "flock", refused)
    monkeypatch.setattr(edits, "_end_of_lines", before_another_line)
    edits.append_line(path, {"second": 1})
    assert path.read_text() == '{"first":1}\n{"other": 1}\n{"second":1}\n'
