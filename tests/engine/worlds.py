"""Random simulations: grids, fields, boundaries, Programs made of a fixed pool of kernels, and layouts for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import minga as mg
from minga.engine.program import Program
from minga.errors import ProgramError
from minga.space.boundary import Condition
from minga.space.cuts import bisection, blocks, cartesian, slabs
from minga.space.field import Field, Register, Slot
from minga.space.grid import Grid
from minga.space.layout import Layout
from minga.space.region import Region

from .eager import (
    Wall,
    beside,
    by_index,
    fixed_array,
    fixed_function,
    fixed_number,
    fixed_register,
    odd_about,
    reflect_cell,
    reflect_edge,
    zero_gradient,
)
from .pool import (
    along,
    back,
    blend,
    box,
    burn,
    checkered,
    counter,
    crossed,
    descend,
    divergence,
    down,
    extremes,
    far,
    fluxes,
    gradient,
    indexed,
    lexicographic,
    life,
    lopsided,
    mean,
    noise,
    on_plate,
    placed,
    profile,
    relax,
    several,
    single,
    smooth_faces,
    star,
    sums,
)

Draw = Callable[[st.SearchStrategy[Any]], Any]


# Worlds ------------------------------------------------------------------------------------------------------------
@dataclass
class World:
    """Fields with walls and initial values, registers, and a Program over them."""

    grid: Grid
    walls: dict[Condition, Wall] = field(default_factory=dict)
    fields: dict[str, Field] = field(default_factory=dict)
    registers: list[Register] = field(default_factory=list)
    programs: list[Program] = field(default_factory=list)
    ordered: bool = False
    float_sums: bool = False
    log: list[str] = field(default_factory=list)

    def wall(self, wall: Wall) -> Condition:
        self.walls[wall.condition] = wall
        return wall.condition

    def initial(self, item: Field) -> np.ndarray:
        rng = np.random.default_rng(sum(map(ord, item.name)))
        values = rng.integers(-8, 8, (item.slots, *item.bounds.shape))
        if item.dtype[0] == "f":
            return values.astype(item.dtype) * np.dtype(item.dtype).type(0.37)
        return (values % 2 if item.dtype == "u1" else values).astype(item.dtype)

    def __repr__(self) -> str:
        return "\n".join([f"World({self.grid!r}", *self.log, *map(repr, self.programs), ")"])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


LENGTHS = {1: 40, 2: 13, 3: 7, 4: 4}


@st.composite
def grids(draw: Draw, float_sums: bool = False) -> Grid:
    ndim = 2 if float_sums else draw(st.sampled_from([1, 2, 2, 2, 3, 3, 4]))
    shape = [draw(st.integers(1, LENGTHS[ndim])) for _ in range(ndim)]
    if float_sums:
        shape[-1] = draw(st.sampled_from([63, 64, 65, 130, 200]))
    periodic = [draw(st.booleans()) for _ in range(ndim)]
    shift = {}
    joined = [a for a in range(ndim) if periodic[a]]
    if len(joined) > 1 and draw(st.booleans()):
        shift = {joined[0]: {joined[-1]: draw(st.integers(-5, 5))}}
    return Grid(shape, periodic=periodic, shift=shift, spacing=[0.5 ** (a + 1) for a in range(ndim)], origin=0.25)


def conditions(draw: Draw, world: World, name: str, dtype: str, centre: Sequence[int] = (), others: bool = True) -> Any:
    """A mapping of the axes that are not periodic to a pair of conditions."""
    grid, result = world.grid, {}
    points = grid.points(tuple(int(a in centre) for a in range(grid.ndim)))
    for axis in range(grid.ndim):
        if grid.periodic[axis]:
            continue
        pair = []
        for _ in range(2):
            options: list[Callable[[], Wall]] = [lambda: fixed_number(1), zero_gradient]
            if points.shape[axis] >= 4:
                options += [reflect_edge, reflect_cell]
            if dtype == "f8":
                face = tuple(n for a, n in enumerate(points.shape) if a != axis)
                options += [
                    lambda: fixed_register(world.registers[0]),
                    lambda: fixed_function(grid.ndim),
                    lambda face=face: fixed_array(np.random.default_rng(3).random(face)),
                    lambda axis=axis: by_index((axis + 1) % grid.ndim),
                ]
                if points.shape[axis] >= 4:
                    options.append(lambda: odd_about(0.5))
                if others and "f" in world.fields:
                    options.append(lambda: beside(world.fields["f"]))
            choice = draw(st.integers(0, len(options) - 1))
            if dtype == "f8" and grid.ndim == 1 and choice >= 2 + 2 * (points.shape[axis] >= 4) + 2:
                choice = 0  # a face of no axes has no array
            pair.append(world.wall(options[choice]()))
        world.log.append(f"  {name} along {grid.axes[axis]}: {pair}")
        result[axis] = tuple(pair)
    return result


@st.composite
def worlds(draw: Draw, length: int = 6, float_sums: bool = False) -> World:
    world = World(draw(grids(float_sums)))
    grid, fields = world.grid, world.fields
    world.float_sums = float_sums
    world.registers = [mg.Register("edge value", "f8", 0.75), mg.Register("flag", "i8"), mg.Register("turns", "i8", 2)]

    def make(name: str, dtype: str = "f8", *, centre: Sequence[int] = (), others: bool = False, **options: Any) -> None:
        axes = options.get("axes")
        boundary = None if axes is not None else conditions(draw, world, name, dtype, centre, others)
        fields[name] = Field(name, grid, dtype, centre=centre, boundary=boundary or None, **options)

    last = grid.ndim - 1
    make("f")
    make("u", slots=2, others=True)
    make("v", slots=3, others=True)
    make("g", "f4", slots=2)
    make("c", "u1", slots=2)
    make("k", "i4", slots=2)
    make("p", centre=(last,))
    make("q", centre=(last,))
    if grid.ndim > 1:
        make("row", axes=(0,), slots=2)
        make("column", axes=(last,))
    lo = [draw(st.integers(0, n - 1)) for n in grid.shape]
    hi = [draw(st.integers(a + 1, n)) for a, n in zip(lo, grid.shape, strict=True)]
    if grid.ndim > 1 and not any(grid.periodic):
        make("plate", slots=2, on=mg.Box(tuple(lo), tuple(hi)))
        if not all(n >= 4 for n in fields["plate"].points.shape):
            box_ = mg.Box(tuple(lo), tuple(hi))
            fields["plate"] = Field("plate", grid, slots=2, on=box_, boundary=world.wall(fixed_number(1)))
    for number in range(draw(st.integers(1, 2))):
        world.programs.append(program(draw, world, f"program {number}", length))
    return world


def program(draw: Draw, world: World, name: str, length: int) -> Program:
    result = Program(name)
    _operations(draw, world, result, draw(st.integers(1, length)), 0)
    if draw(st.booleans()):
        result.let(mg.STEP, mg.STEP + 1)
    return result


def _slot(draw: Draw, item: Field, but: Sequence[Slot] = ()) -> Slot:
    options = [item.slot(k) for k in range(item.slots) if item.slot(k) not in but]
    return draw(st.sampled_from(options))


def _operations(draw: Draw, world: World, program: Program, count: int, depth: int) -> None:
    for _ in range(count):
        kind = draw(
            st.sampled_from(
                ["apply"] * 8 + ["rotate"] * 2 + ["let", "call", "refresh"] + ["loop", "when"] * (depth < 2)
            )
        )
        if kind == "apply":
            _apply(draw, world, program)
        elif kind == "rotate":
            names = draw(st.sampled_from([("u",), ("v",), ("u", "v"), ("c",), ("k",)]))
            _rotate(program, [world.fields[name] for name in names])
        elif kind == "let":
            edge, flag, _ = world.registers
            program.let(edge, edge * 0.5 + 0.25)
            program.let(flag, flag + 1)
        elif kind == "call":
            item = world.fields[draw(st.sampled_from(["u", "c", "p"]))]
            program.call(_halve(item), writes=[item])
        elif kind == "refresh":
            program.refresh(_slot(draw, world.fields[draw(st.sampled_from(["v", "k"]))]), draw(st.integers(1, 2)))
        elif kind == "when":
            flag = world.registers[1]
            with program.when(flag % 2 == draw(st.integers(0, 1))):
                _operations(draw, world, program, draw(st.integers(1, 3)), depth + 1)
        else:
            flag, turns = world.registers[1], world.registers[2]
            way = draw(st.sampled_from(["count", "register", "until"]))
            if way == "until":
                goal = draw(st.integers(0, 4))
                loop = program.repeat(until=flag >= goal, limit=draw(st.integers(0, 3)))
            else:
                loop = program.repeat(turns if way == "register" else draw(st.integers(0, 4)))
            with loop:
                _operations(draw, world, program, draw(st.integers(1, 3)), depth + 1)
                program.let(flag, flag + 1)


def _rotate(program: Program, fields: Sequence[Field]) -> None:
    """Rotate fields, unless their levels are stored in parts in a way that is refused."""
    try:
        program.rotate(*fields)
    except ProgramError as error:
        if not str(error).startswith("rotate("):
            raise


def _halve(item: Field) -> Callable[[Any], None]:
    def halve(engine: Any) -> None:
        for _, view in engine.blocks(item):
            view[...] = view // 2 if view.dtype.kind in "iu" else view * 0.5

    return halve


Recorder = Callable[[Draw, World, Program], object]
"""Records one operation of a kernel on drawn slots and regions."""


def _apply(draw: Draw, world: World, program: Program) -> None:
    pool = [*_PLAIN]
    if "row" in world.fields:
        pool += ["profile", "along"]
    if "plate" in world.fields:
        pool += ["on_plate"]
    if world.float_sums:
        pool += ["mean", "descend"] * 4
    (_PLAIN | _SPECIAL)[draw(st.sampled_from(pool))](draw, world, program)


def _between(kernel: mg.Kernel, sparse: bool) -> Recorder:
    """From a slot of u or v to another one."""

    def record(draw: Draw, world: World, program: Program) -> None:
        source = _slot(draw, world.fields[draw(st.sampled_from(["u", "v"]))])
        target = _slot(draw, world.fields[draw(st.sampled_from(["u", "v"]))], [source])
        program.apply(kernel, source, target, region=_region(draw, world.grid.box, sparse))

    return record


def _within(kernel: mg.Kernel, name: str, *between: str, before: Sequence[str] = ()) -> Recorder:
    """From a slot of a field to another one of it, with fields before and between them."""

    def record(draw: Draw, world: World, program: Program) -> None:
        source = _slot(draw, world.fields[name])
        others = [_slot(draw, world.fields[other]) for other in between]
        first = [world.fields[other] for other in before]
        program.apply(kernel, *first, source, *others, _slot(draw, world.fields[name], [source]))

    return record


def _looking(kernel: mg.Kernel) -> Recorder:
    """Reductions of a slot of u."""

    def record(draw: Draw, world: World, program: Program) -> None:
        program.apply(kernel, _slot(draw, world.fields["u"]), region=_region(draw, world.grid.box))

    return record


def _on(kernel: mg.Kernel, *names: str, **scalars: Any) -> Recorder:
    """Any slot of these fields."""

    def record(draw: Draw, world: World, program: Program) -> None:
        program.apply(kernel, *(_slot(draw, world.fields[name]) for name in names), **scalars)

    return record


def _in_order(kernel: mg.Kernel) -> Recorder:
    """In place, in an order; two colours do not fit on an odd number of cells around."""

    def record(draw: Draw, world: World, program: Program) -> None:
        if kernel is checkered:
            odd = any(p and n % 2 for p, n in zip(world.grid.periodic, world.grid.shape, strict=True))
            if odd or any(sum(v) % 2 for v in world.grid.shift):
                return
        world.ordered |= kernel is not checkered
        program.apply(kernel, _slot(draw, world.fields["u"]), world.fields["f"])

    return record


def _blend(draw: Draw, world: World, program: Program) -> None:
    x, y = _slot(draw, world.fields["v"]), _slot(draw, world.fields["u"])
    edge = world.registers[0]
    program.apply(blend, x, y, a=draw(st.sampled_from([0.25, edge, edge * 0.5])), region=_region(draw, world.grid.box))


def _several(draw: Draw, world: World, program: Program) -> None:
    f = world.fields
    program.apply(several, [f["u"], f["v"]], f["f"], _slot(draw, f["g"]))


_PLAIN: dict[str, Recorder] = {
    "star": _between(star, True), "box": _between(box, True), "lopsided": _between(lopsided, True),
    "far": _between(far, True), "blend": _blend, "life": _within(life, "c"), "burn": _within(burn, "c"),
    "noise": _between(noise, True), "indexed": _between(indexed, True), "placed": _between(placed, True),
    "fluxes": _between(fluxes, False), "crossed": _between(crossed, False), "extremes": _looking(extremes),
    "sums": lambda draw, world, program: program.apply(sums, world.fields["k"], world.fields["c"]),
    "relax": _between(relax, False), "counter": _within(counter, "k", "c"), "gradient": _on(gradient, "u", "p"),
    "divergence": _within(divergence, "u", "p"), "smooth_faces": _on(smooth_faces, "p", "q"), "several": _several,
    "single": _on(single, "g", "u"),
    "reset": lambda draw, world, program: program.apply(blend, world.fields["f"], world.fields["u"], a=0.125),
    "checkered": _in_order(checkered), "lexicographic": _in_order(lexicographic), "down": _in_order(down),
    "back": _in_order(back),
}  # fmt: skip
"""Operations that every world allows."""
_SPECIAL: dict[str, Recorder] = {
    "profile": _within(profile, "u", "row", "column"), "along": _within(along, "row"),
    "on_plate": _within(on_plate, "plate", before=["u"]), "mean": _looking(mean), "descend": _between(descend, False),
}  # fmt: skip


def _region(draw: Draw, space: mg.Box, sparse: bool = False) -> mg.Box | Region | None:
    if draw(st.integers(0, 3)):
        return None
    if sparse and draw(st.booleans()):
        cell = st.tuples(*(st.integers(0, n - 1) for n in space.shape))
        return draw(
            st.sampled_from(
                [
                    Region(stride=draw(st.integers(1, 3))),
                    Region(colour=draw(st.integers(0, 1))),
                    Region(points=draw(st.lists(cell, min_size=1, max_size=4))),
                ]
            )
        )
    lo = [draw(st.integers(0, n - 1)) for n in space.shape]
    hi = [draw(st.integers(a + 1, n)) for a, n in zip(lo, space.shape, strict=True)]
    return mg.Box(tuple(lo), tuple(hi))


# Ways to run -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Way:
    """A layout and the engine's settings."""

    layout: Layout
    halo_depth: int
    overlap: bool
    threads: int
    slabs: bool

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        boxes = ", ".join(f"{self.layout.box(b)} on {self.layout.owner[b]}" for b in range(len(self.layout)))
        settings = f"halo depth {self.halo_depth}, overlap {self.overlap}, {self.threads} threads"
        printer.text(f"{self.layout.ranks} ranks, {boxes}; {settings}")


@st.composite
def ways(draw: Draw, grid: Grid, granule: int = 1, most: int = 7) -> Way:
    ranks = draw(st.integers(1, most))
    domain, kind = grid.box, draw(st.sampled_from(["slabs", "slabs", "cartesian", "bisection", "blocks", "single"]))
    axis = draw(st.integers(0, grid.ndim - 1))
    if kind == "slabs":
        weights = [float(draw(st.integers(0, 3))) for _ in range(ranks)]
        layout = slabs(domain, ranks, axis, weights if any(weights) else None, granule)
    elif kind == "cartesian":
        parts = [1] * grid.ndim
        left = ranks
        for a in range(grid.ndim):
            parts[a] = draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0]))
            left //= parts[a]
        parts[axis] *= left
        layout = cartesian(domain, parts, granule=granule)
    elif kind == "bisection":
        weights = [float(draw(st.integers(0, 3))) for _ in range(ranks)]
        layout = bisection(domain, weights if any(weights) else [1.0] * ranks, granule)
    elif kind == "blocks":
        layout = blocks(domain, ranks, draw(st.integers(1, 4)), granule=granule)
    else:
        layout = Layout.single(domain, ranks, draw(st.integers(0, ranks - 1)))
    return Way(
        layout, draw(st.sampled_from([1, 1, 2, 3, 5])), draw(st.booleans()), draw(st.sampled_from([1, 1, 2])),
        sum(len(c) > 1 for c in layout.cuts) <= 1,
    )  # fmt: skip
