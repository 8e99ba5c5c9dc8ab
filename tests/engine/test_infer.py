"""Where exchanges, boundary fills and loops' invariants are placed: the schedule itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import minga as mg
from minga.engine.infer import infer
from minga.engine.program import Apply, Let, Program, Rotate
from minga.engine.reach import Reach
from minga.engine.schedule import Begin, Boundaries, Branch, Finish, Item, Loop, Stage

GRID = mg.Grid((16, 16), periodic=True)
OPEN = mg.Grid((16, 16))


@mg.kernel
def star(u, new):
    new[0, 0] = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]


@mg.kernel
def wide(u, new):
    new[0, 0] = u[-2, 0] + u[0, 2]


@mg.kernel
def box(u, new):
    new[0, 0] = u[-1, -1] + u[1, 1]


@mg.kernel
def point(u, new):
    new[0, 0] = 2.0 * u[0, 0]


@mg.kernel
def source(u):
    u[0, 0] = u[0, 0] + 1.0


@mg.kernel(order="red-black")
def checkered(u):
    u[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


def field(name: str = "u", grid: mg.Grid = GRID, **options: Any) -> mg.Field:
    return mg.Field(name, grid, **{"slots": 2, **options})


def text(items: Sequence[Item]) -> list[Any]:
    """A schedule in words."""
    result: list[Any] = []
    for item in items:
        match item:
            case Stage():
                deep = "" if item.extent.empty else f" +{max(item.extent.lo + item.extent.hi)}"
                result.append(f"{item.apply.label}{'' if item.part == 'all' else ' ' + item.part}{deep}")
            case Begin():
                result.append("begin " + ",".join(map(repr, item.exchange.start)))
            case Finish():
                result.append("finish " + ",".join(map(repr, item.exchange.finish)))
            case Boundaries():
                result.append(f"fill {item.slot!r}")
            case Loop():
                result.append([text(one) for one in item.rounds] + ([text(item.restore)] if item.restore else []))
            case Branch():
                result.append(("when", text(item.body)))
            case Rotate():
                result.append("rotate")
            case Let():
                result.append(item.label)
            case _:
                result.append(type(item).__name__)
    return result


def of(program: Program, **how: Any) -> list[Any]:
    return text(infer(program.operations, **{"overlap": False, **how}).items)


def test_an_exchange_stands_before_its_first_reader_only() -> None:
    u, a, b = field(), field("a"), field("b")
    program = Program()
    program.apply(point, u, a)
    program.apply(star, u, a)
    program.apply(star, u, b)
    program.apply(box, u, b)
    assert of(program) == ["point", "begin u[0]", "finish u[0]", "star", "star", "begin u[0]", "finish u[0]", "box"]


def test_stars_need_no_corners() -> None:
    u, a = field(), field("a")
    program = Program()
    program.apply(star, u, a)
    program.apply(box, a, u)
    begins = [i for i in infer(program.operations, overlap=False).items if isinstance(i, Begin)]
    assert begins[0].exchange.reaches == (Reach((1, 1), (1, 1), True),)
    assert begins[1].exchange.reaches == (Reach((1, 1), (1, 1), False),)


def test_wide_faces_and_narrow_corners_are_not_wide_corners() -> None:
    """What is valid after both is the box that came last: its corners are one cell wide, not two."""
    u, a = field(), field("a")

    @mg.kernel
    def wide_box(u, new):
        new[0, 0] = u[-2, 2]

    program = Program()
    for kernel in (wide, box, wide_box):
        program.apply(kernel, u, a)
    assert of(program).count("begin u[0]") == 3


def test_a_loop_exchanges_before_it_and_at_the_end_of_each_round() -> None:
    u = field()
    program = Program()
    with program.repeat(5):
        program.apply(star, u, u.next)
        program.rotate(u)
    assert of(program) == ["begin u[0]", "finish u[0]", [["star", "rotate", "begin u[0]", "finish u[0]"]]]
    assert of(program, overlap=True)[2] == [
        ["star shell", "begin u[1]", "star interior", "rotate", "finish u[0]"],
    ]


def test_what_a_loop_does_not_change_is_exchanged_once() -> None:
    u, f = field(), field("f")
    program = Program()
    with program.repeat(5):
        program.apply(star, f, u)
    assert of(program) == ["begin f[0]", "finish f[0]", [["star"]]]


def test_the_trailing_group_is_split() -> None:
    """A source is added in the shell before it is sent."""
    u = field()
    program = Program()
    with program.repeat(5):
        program.apply(star, u, u.next)
        program.apply(source, u.next)
        program.rotate(u)
    assert of(program, overlap=True)[2] == [
        ["star shell", "source shell", "begin u[1]", "star interior", "source interior", "rotate", "finish u[0]"],
    ]


def test_a_stage_whose_result_is_read_aside_is_not_split() -> None:
    u, a = field(), field("a")
    program = Program()
    program.apply(point, a, u)
    program.apply(star, u, u.next)
    program.apply(star, u.next, a)
    words = of(program, overlap=True)
    assert words[:3] == ["point shell", "begin u[0]", "point interior"]
    program = Program()
    with program.repeat(2):
        program.apply(checkered, u)
    assert of(program, overlap=True)[2] == [
        ["checkered shell", "begin u[0]", "checkered interior", "finish u[0]"] * 2,
    ]


def test_deep_halos_leave_exchanges_out() -> None:
    u = field()
    program = Program()
    with program.repeat(9):
        program.apply(star, u, u.next)
        program.rotate(u)
    loop = of(program, depth=3)[2]
    assert loop == [
        ["star +2", "rotate"],
        ["star +1", "rotate"],
        ["star", "rotate", "begin u[0]", "finish u[0]"],
        ["begin u[0]", "finish u[0]"],
    ]
    straight = Program()
    for _ in range(3):
        straight.apply(star, u, u.next)
        straight.rotate(u)
    assert of(straight, depth=3) == [
        "begin u[0]",
        "finish u[0]",
        "star +2",
        "rotate",
        "star +1",
        "rotate",
        "star",
        "rotate",
    ]


def test_fills_stand_after_exchanges_and_are_not_repeated() -> None:
    u, a = field(grid=OPEN, boundary=mg.zero_gradient()), field("a", OPEN)
    program = Program()
    program.apply(star, u, a)
    program.apply(star, u, a.next)
    program.apply(source, u)
    program.apply(star, u, a)
    assert of(program) == [
        *("begin u[0]", "finish u[0]", "fill u[0]", "star", "star", "source"),
        *("begin u[0]", "finish u[0]", "fill u[0]", "star"),
    ]


def test_operations_inside_the_domain_need_no_fill() -> None:
    u, a = field(grid=OPEN), field("a", OPEN)
    program = Program()
    program.apply(star, u, a, region=mg.Box((1, 1), (15, 15)))
    assert of(program) == ["begin u[0]", "finish u[0]", "star"]


def test_fills_that_depend_on_registers_follow_them() -> None:
    level = mg.Register("level")
    u, a = field(grid=OPEN, boundary=mg.fixed(level)), field("a", OPEN)
    program = Program()
    program.apply(star, u, a)
    program.let(level, level + 1)
    program.apply(star, u, a)
    with program.repeat(2):
        program.apply(star, u, a)
        program.let(level, level + 1)
    words = of(program)
    assert words[2:] == ["fill u[0]", "star", "let level", "fill u[0]", "star", [["fill u[0]", "star", "let level"]]]


def test_branches_keep_what_holds_either_way() -> None:
    u, a, flag = field(), field("a"), mg.Register("flag", "bool")
    program = Program()
    program.apply(star, u, a)
    with program.when(flag):
        program.apply(source, u)
    program.apply(star, u, a)
    with program.when(flag):
        program.apply(box, u, a)
    program.apply(star, u, a)
    assert of(program) == [
        *("begin u[0]", "finish u[0]", "star", ("when", ["source"]), "begin u[0]", "finish u[0]", "star"),
        *(("when", ["begin u[0]", "finish u[0]", "box"]), "star"),
    ]


def test_rotation_renames_what_is_valid() -> None:
    u, a = field(slots=3), field("a")
    program = Program()
    program.apply(star, u.next, a)
    program.rotate(u)
    program.apply(star, u, a)
    program.apply(star, u.previous, a)
    assert of(program) == ["begin u[1]", "finish u[1]", "star", "rotate", "star", "begin u[2]", "finish u[2]", "star"]


def test_what_is_known_at_the_start() -> None:
    u, a = field(), field("a")
    program = Program()
    program.apply(star, u, a)
    schedule = infer(program.operations)
    assert text(infer(program.operations, valid=schedule.valid).items) == ["star"]


def test_several_fields_in_one_exchange() -> None:
    @mg.kernel
    def two(u, v, new):
        new[0, 0] = u[-1, 0] + v[1, 0]

    u, v, a = field(), field("v"), field("a")
    program = Program()
    program.apply(two, u, v, a)
    assert of(program) == ["begin u[0],v[0]", "finish u[0],v[0]", "two"]


@pytest.mark.parametrize(
    ("a", "b", "covers"),
    [
        (Reach((1, 1), (1, 1)), Reach((1, 0), (0, 1), True), True),
        (Reach((1, 1), (1, 1), True), Reach((1, 1), (1, 1)), False),
        (Reach((2, 2), (2, 2), True), Reach((0, 0), (0, 0)), True),
        (Reach((1, 0), (0, 0)), Reach((0, 1), (0, 0), True), False),
    ],
)
def test_reaches(a: Reach, b: Reach, covers: bool) -> None:
    assert a.covers(b) is covers
    assert a.union(b).covers(a)
    assert a.union(b).covers(b)
    assert a.covers(a.meet(b))
    assert b.covers(a.meet(b))


def test_applies_know_what_they_run_over() -> None:
    u, a = field(), field("a")
    program = Program()
    program.apply(star, u, a)
    (apply,) = program.operations
    assert isinstance(apply, Apply)
    assert (apply.region, apply.extent, apply.replicated) == (GRID.box, (16, 16), False)
