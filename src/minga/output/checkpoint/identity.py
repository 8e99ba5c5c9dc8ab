"""Check that a run may be resumed from a checkpoint: properties that must be equal, of a model and of a case.

Everything that affects a bit of the result must be equal. Other things may change: the number of ranks and threads, the
layout, the frequency of checkpoints, and the total number of steps.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from minga.engine.model import Model
from minga.engine.program import Apply, Call, Let, Move, Operation, Refresh, Repeat, Rotate, When
from minga.engine.state import State
from minga.engine.stop import Stop
from minga.options import FIXED, RunOptions, marked
from minga.schema import tables_of
from minga.space.boundary import SIDES, FaceArray, trace_fill
from minga.space.field import Constant, Field, Register, Slot

__all__ = ["INITIAL", "case_of", "changed_entries", "identity_of"]

INITIAL: Final = "initial values"
"""Name of the part of an identity for the values with which a run began."""
_OBSERVERS: Final = "observers"
"""Table of a case that may change: observers do not affect results."""


def identity_of(model: Model, state: State, stop: Stop | None) -> dict[str, str]:
    """Return digests of the parts of a model."""
    names = {item: name for name, item in state.fields.items()}
    fields = [line for item in state.fields.values() for line in _field(item, names)]
    observe = [] if model.observe is None else list(_spelled(model.observe.operations, names))
    parts = {
        "grid": [repr(model.grid), repr(model.grid.spacing), repr(model.grid.shift)],
        "fields": fields,
        "step": list(_spelled(model.step.operations, names)),
        "observables": [*observe, *(f"{name} {item!r}" for name, item in model.observables.items())],
        "seed": [str(model.seed)],
        "stop": [] if stop is None else [repr((stop.when, stop.longest, stop.every))],
    }
    return {name: hashlib.sha256("\n".join(lines).encode()).hexdigest() for name, lines in parts.items()}


def case_of(case: Path, inputs: Path) -> dict[str, Any]:
    """Return the entries of a resolved case that must not change, as ``table.key``, and digests of its files."""
    table = tomllib.loads(case.read_text(encoding="utf-8"))
    found = entries_of(table)
    files = sorted(path for path in inputs.rglob("*") if path.is_file()) if inputs.is_dir() else []
    for file in files:
        name = f"{inputs.name}/{file.relative_to(inputs).as_posix()}"
        run = table.get("run", {})
        if "__pycache__" not in file.parts and name not in (run.get("machine"), run.get("topology")):
            with file.open("rb") as stream:
                found[name] = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
    return found


def entries_of(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a case that must not change."""
    fixed, tables = marked(FIXED), tables_of(RunOptions)
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key in tables:
            found |= {f"{key}.{name}": inner for name, inner in value.items() if (key, name) in fixed}
        elif isinstance(value, Mapping) and key != _OBSERVERS:
            found |= {f"{key}.{name}": inner for name, inner in value.items()}
        elif key not in ("name", _OBSERVERS):
            found[key] = value
    return found


def changed_entries(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Describe each entry that has changed."""
    said = []
    for key in dict.fromkeys((*before, *now)):
        was, found, file = before.get(key), now.get(key), key.startswith("inputs/")
        if was != found and not (file and key not in before):  # a new file counts only if an entry names it
            changed = "the file has changed" if file else f"it was {was!r}, now it is {found!r}"
            said.append(f"{key}: {changed}")
    return said


def _field(item: Field, names: Mapping[Field, str]) -> Iterator[str]:
    yield f"{names[item]} {item.dtype} {item.slots} {item.centre} {item.axes} {item.points}"
    for axis in range(item.grid.ndim):
        for side in SIDES:
            fill = None if item.replicated else trace_fill(item, axis, side, 1)
            if fill is not None:
                arrays = [
                    hashlib.sha256(o.values.tobytes()).hexdigest() for o in fill.operands if isinstance(o, FaceArray)
                ]
                yield f"  {axis} {side} {fill.graph.digest()} {' '.join(arrays)}"


def _constant(item: Constant) -> str:
    """Return the name of a constant, with a digest of its values where these decide the results like a kernel."""
    if item.name.startswith("@coordinate"):
        return item.name
    return f"{item.name}:{hashlib.sha256(item.array.tobytes()).hexdigest()[:16]}"


def _spelled(operations: Sequence[Operation], names: Mapping[Field, str], depth: int = 0) -> Iterator[str]:
    """Yield descriptions of operations that are equal in every process if the operations are."""

    def slot(item: Slot) -> str:
        return f"{names[item.field]}/{item.index}"

    indent = "  " * depth
    for operation in operations:
        match operation:
            case Apply():
                operands = [_constant(o) if isinstance(o, Constant) else slot(o) for o in operation.operands]
                scalars = [f"{name}={_scalar(value)}" for name, value in operation.scalars.items()]
                cells = operation.cells
                where = (operation.region, cells.box, cells.stride, cells.colour, cells.points, operation.colour)
                results = [register.key for register in operation.results]
                yield f"{indent}apply {operation.graph.digest()} {operands} {scalars} {where} {results}"
            case Let():
                yield f"{indent}let {operation.register.key} {operation.graph.digest()}"
            case Rotate():
                yield f"{indent}rotate {[names[item] for item in operation.fields]}"
            case Move():
                boxes = [str(box) for box in operation.boxes] or ""
                yield f"{indent}move {slot(operation.source)} {slot(operation.target)}{boxes}"
            case Call():
                touched = list(map(slot, (*operation.reads, *operation.writes)))
                yield f"{indent}call {operation.label} {touched}"
            case Refresh():
                yield f"{indent}refresh {slot(operation.slot)} {operation.width}"
            case Repeat():
                until = "" if operation.until is None else operation.until.graph.digest()
                limit = operation.limit
                yield f"{indent}repeat {limit.key if isinstance(limit, Register) else limit} {until}"
                yield from _spelled(operation.body, names, depth + 1)
            case When():
                yield f"{indent}when {operation.condition.graph.digest()}"
                yield from _spelled(operation.body, names, depth + 1)


def _scalar(value: object) -> str:
    return value.key if isinstance(value, Register) else f"{type(value).__name__} {value!r}"
