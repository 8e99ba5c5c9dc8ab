"""Recording: what apply and its seven companions accept, return and refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import minga as mg
from minga.engine.program import Program
from minga.errors import LayoutError, MingaError, ProgramError

GRID = mg.Grid((6, 8))
u = mg.Field("u", GRID, slots=2, boundary=mg.fixed(0.0))
v = mg.Field("v", GRID)
c = mg.Field("c", GRID, "u1")
row = mg.Field("row", GRID, axes="x")
faces = mg.Field("faces", GRID, centre="x")


@mg.kernel
def scale(a, b, *, factor=2.0):
    b[0, 0] = factor * a[0, 0]


@mg.kernel
def shift(a, b):
    b[0, 0] = a[0, 1]


@mg.kernel
def norm(a):
    return mg.max(abs(a[0, 0]))


@mg.kernel
def norms(a):
    return {"most": mg.max(a[0, 0]), "many": mg.count(a[0, 0] > 0)}


@mg.kernel
def listed(items, b):
    b[0, 0] = items[0][0, 0] + items[1][0, 0]


@mg.kernel(order="red-black")
def checkered(a):
    a[0, 0] = a[0, 1]


def test_apply_returns_its_reductions() -> None:
    program = Program("step")
    assert program.apply(scale, u, v) is None
    one = program.apply(norm, u)
    assert isinstance(one, mg.Register)
    assert one.dtype == "f8"
    two = program.apply(norms, v)
    assert (two.most.dtype, two.many.dtype) == ("f8", "i8")
    assert len(program.operations) == 3


def test_into_names_registers() -> None:
    program, most = Program("step"), mg.Register("most")
    assert program.apply(norm, u, into=most) is most
    two = program.apply(norms, u, into={"most": most, "many": mg.Register("many", "i8")})
    assert two.most is most


def test_a_program_reads_like_an_outline() -> None:
    program, most = Program("step"), mg.Register("most")
    with program.repeat(until=most < 1e-3, limit=10):
        program.apply(shift, u, u.next, region=mg.Box((0, 0), (6, 7)))
        program.rotate(u)
        with program.when(most > 1):
            program.call(print_nothing, writes=[v])
    program.refresh(u, 2)
    assert repr(program).splitlines() == [
        "Program 'step'",
        "  repeat at most 10 until a condition:",
        "    apply keep(u[0], u[1]) on [0:6, 7:8]",
        "    apply shift(u[0], u[1]) on [0:6, 0:7]",
        "    rotate u",
        "    when a condition:",
        "      call print_nothing",
        "  refresh u[0] to width 2",
    ]


def print_nothing(engine: Any) -> None:
    return None


def record(action: Callable[[Program], Any]) -> Callable[[], Any]:
    return lambda: action(Program("step"))


MISTAKES: dict[str, tuple[Callable[[Program], Any], str, str]] = {
    "not a kernel": (lambda p: p.apply(print_nothing, u), "expects a kernel first, found print_nothing", "@mg.kernel"),
    "a number by position": (lambda p: p.apply(scale, u, 2.0), "'b' expects a field", "keyword"),
    "a field by keyword": (lambda p: p.apply(scale, u, v, factor=u), "scalar 'factor' is Field", "by position"),
    "an unknown scalar": (lambda p: p.apply(scale, u, v, facter=1), "no scalar parameter 'facter'", "mean 'factor'?"),
    "too few fields": (lambda p: p.apply(scale, u), "takes 2 fields", "one field"),
    "no fields": (lambda p: p.apply(norm), "no fields", "one field"),
    "a region too large": (
        lambda p: p.apply(scale, u, v, region=mg.Box((0, 0), (7, 8))), "reaches beyond the points", "inside the points",
    ),
    "an open end": (lambda p: p.apply(shift, v, u), "'v' is read beyond the high end of axis 'x'", "boundary=mg.fixed"),
    "stored and read aside": (lambda p: p.apply(shift, u, u), "is stored and also read at neighbours", "slots=2"),
    "a missing slot": (lambda p: v.next, "has no slot 1", "slots="),
    "one field stored twice": (lambda p: p.apply(pair, v, v), "two parameters that are both stored", ""),
    "a wrong register": (
        lambda p: p.apply(norm, u, into=mg.Register("n", "i8")), "reduction 'value' is f8", "Register of dtype f8",
    ),
    "rotation of one slot": (lambda p: p.rotate(v), "rotate", "slots=2"),
    "let without a register": (lambda p: p.let(u, 1), "let expects a register first", "mg.Register"),
    "two limits": (lambda p: p.repeat(3, limit=4).__enter__(), "a count is its own limit", "drop limit="),
    "no limit at all": (lambda p: p.repeat().__enter__(), "either a count or until=", "P.repeat(10)"),
    "negative rounds": (lambda p: p.repeat(-1).__enter__(), "-1 rounds", "0 or more"),
    "a float that counts": (lambda p: p.repeat(mg.Register("n")).__enter__(), "cannot count rounds", '"i8"'),
    "a move to other points": (lambda p: p.move(u, faces), "move from", "same points"),
    "a refresh of nothing": (lambda p: p.refresh(u, 0), "width 0", "1 or more"),
}  # fmt: skip


@mg.kernel
def pair(a, b):
    a[0, 0] = 1.0
    b[0, 0] = 2.0


@pytest.mark.parametrize("name", list(MISTAKES))
def test_mistakes_say_what_and_how(name: str) -> None:
    action, message, remedy = MISTAKES[name]
    with pytest.raises(MingaError) as error:
        action(Program("step"))
    assert message in str(error.value)
    assert remedy in str(error.value)
    assert "fix: " in str(error.value) or not remedy


def test_python_cannot_decide_on_registers() -> None:
    register = mg.Register("residual")
    with pytest.raises(LayoutError, match=r"with P\.when"):
        bool(register)
    with pytest.raises(MingaError):
        bool(register > 0)


def test_let_refuses_cells() -> None:
    program = Program("step")

    @mg.kernel
    def keep(a):
        nonlocal cell
        cell = a[0, 0]
        return mg.max(cell)

    cell: Any = None
    program.apply(keep, v)
    with pytest.raises(ProgramError, match="the value depends on cells"):
        program.let(mg.Register("r"), cell + 1)


def test_a_missing_scalar() -> None:
    @mg.kernel
    def scaled(a, b, *, factor):
        b[0, 0] = factor * a[0, 0]

    with pytest.raises(ProgramError, match="scalar 'factor' is missing"):
        Program("step").apply(scaled, u, v)


def test_lists_of_fields_and_fields_of_some_axes() -> None:
    program = Program("step")
    program.apply(listed, [u, v], c_like())

    @mg.kernel
    def along(r, b):
        b[0, 0] = r[0]

    program.apply(along, row, v)
    with pytest.raises(MingaError):
        program.apply(along, v, row)


def c_like() -> mg.Field:
    return mg.Field("w", GRID)


def test_grids_of_other_dimensions_are_refused() -> None:
    line = mg.Field("line", mg.Grid((6,)))
    with pytest.raises(ProgramError, match=r"grids with \[1, 2\] axes"):
        Program("step").apply(scale, u, line)


def test_red_black_is_two_operations() -> None:
    program = Program("step")
    program.apply(checkered, u)
    assert [operation.colour for operation in program.operations] == [0, 1]  # type: ignore[union-attr]


def test_operations_recorded_in_a_block_stay_there_when_it_fails() -> None:
    program = Program("step")
    with pytest.raises(ProgramError), program.repeat(3):
        program.rotate(v)
    program.rotate(u)
    assert len(program.operations) == 2
