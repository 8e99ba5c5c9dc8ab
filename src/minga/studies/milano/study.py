"""Milano, Mocskos and Marshall's comparison of sweeps, Tables 1 to 4, Figs. 6 and 7, at a size for one machine.

The results of a block-hybrid sweep depend only on how the grid is cut into blocks: p blocks give the bits of p ranks.
This is checked on virtual ranks for one case; after that, one rank processes all blocks, without waiting.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.begin import start
from minga.engine.comm import Comm, run_virtual
from minga.engine.engine import Engine
from minga.errors import RunError
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.relaxation.scheme import RelaxationOptions, relaxation
from minga.models.electrodeposition.soft import soft_cell
from minga.output.velocity import centred
from minga.space.cuts import slabs
from minga.space.layout import Layout

__all__ = ["Sizes", "measure", "sizes", "tables"]

Say = Callable[[str], None]
Arrays = dict[str, NDArray[np.float64]]

PAPER_DIFFERENCES: Final[Mapping[str, Mapping[int, tuple[float, float, float]]]] = {
    "A": {32: (0.004, 0.130, 0.462), 96: (0.000, 0.005, 0.094), 128: (0.000, 0.002, 0.017)},
    "potential": {32: (0.564, 8.930, 32.646), 96: (0.032, 0.077, 0.796), 128: (0.000, 0.000, 0.005)},
    "|psi|": {32: (1.026, 6.581, 74.188), 96: (0.702, 1.654, 3.586), 128: (0.230, 0.494, 1.428)},
    "|v|": {32: (0.841, 10.740, 35.823), 96: (1.808, 3.526, 5.111), 128: (1.104, 1.348, 2.421)},
}
"""Table 1 of Milano, Mocskos and Marshall, %: by field, planes along y, and 2, 4, 8 processes."""

PAPER_SWEEPS: Final[Mapping[int, Mapping[int, tuple[int, int]]]] = {
    50: {2: (6624, 6669), 4: (6591, 6700), 8: (6667, 6927)},
    100: {2: (6019, 6021), 4: (6011, 6022), 8: (5512, 5550)},
    200: {2: (8159, 8160), 4: (7848, 7861), 8: (7782, 7857)},
}
"""Tables 2 to 4: sweeps in five time steps, lexicographic and boundary-first, by planes along y and processes."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Extent of the study.

    Attributes
    ----------
    longer
        Planes along y in Table 1; the length of the cells is proportional to them.
    planes
        Planes along y in Tables 2 to 4, in cells of a fixed length.
    gap
        Grid cells across the gap.
    blocks
        Numbers of blocks into which the grid is cut.
    steps
        Time steps.
    early, late
        Largest update of the sweep that ends a step in Table 1.
    loose
        The same in Tables 2 to 4.
    picture
        Grid cells of Figs. 6 and 7.
    """

    longer: tuple[int, ...]
    planes: tuple[int, ...]
    gap: int
    blocks: tuple[int, ...]
    steps: int
    early: float
    late: float
    loose: float
    picture: tuple[int, int]


def sizes(*, quick: bool) -> Sizes:
    """Return sizes for a study of a few seconds, or of some minutes."""
    if quick:
        return Sizes((16, 32), (16, 32), 4, (2, 4), 2, 1e-2, 1e-5, 1e-3, (36, 12))
    return Sizes((32, 96, 128), (25, 50, 100), 6, (2, 4, 8), 5, 1e-2, 1e-5, 1e-3, (60, 24))


LAYER: Final = 0.04
"""Height of the planes of Table 1: twice the Debye length."""
SHORT: Final = 3e-4
"""Time step of Table 1, in which changes at an electrode do not reach the middle of a block of many planes."""
FIELD: Final = 20.0
"""Field in RT/F per unit of length."""
LEAST: Final = 1e-2
"""Fraction of the largest value below which values are compared as if they were that large."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """Results of the relaxations of a problem: sweeps of every time step, fields after every step, seconds."""

    sweeps: list[int]
    frames: list[Arrays]
    seconds: float


def cut(layout: Layout, ranks: int) -> Layout:
    """Return the same blocks distributed over ``ranks`` ranks."""
    owner = np.arange(len(layout)) * ranks // len(layout)
    return Layout(layout.domain, ranks, layout.lo, layout.hi, owner)


def relax(problem: Problem, settings: RelaxationOptions, blocks: int, steps: int, ranks: int = 1) -> Relaxed:
    """Run time steps on `blocks` slabs along y, spread over `ranks` virtual ranks."""
    model = relaxation(problem, settings)
    psi = [f for f in model.fields if f.name.startswith("psi_")]
    speeds = [f for f in model.fields if f.name.startswith("v_")]
    sweeps = model.observables["sweeps"]
    assert not isinstance(sweeps, tuple)

    staggered = {"|psi|": psi, "|v|": speeds}

    def body(comm: Comm) -> tuple[list[int], list[Any]]:
        layouts = {grid: cut(slabs(grid.box, blocks, 0, granule=1), ranks) for grid in model.grids}
        counts: list[int] = []
        frames: list[Any] = []
        with Engine(layouts, comm=comm, threads=1) as engine:
            start(model, engine)
            for _ in range(steps):
                outcome = engine.run(model.step)
                if not outcome.ok:
                    raise RunError(
                        f"the relaxation ended with {outcome.reason!r} in {outcome.place or 'its loop'}",
                        remedy="use --quick, or fewer cells",
                    )
                counts.append(int(engine.read(sweeps)))
                plain = {name: engine.gather(model.field(name)) for name in ("C", "A", "potential")}
                sides = {name: [(engine.gather(f), f.centre) for f in parts] for name, parts in staggered.items()}
                if comm.rank == 0:
                    frames.append(plain | {name: _length([_middle(*s) for s in side]) for name, side in sides.items()})
        return counts, frames

    began = time.perf_counter()
    counts, frames = run_virtual(ranks, body)[0]
    return Relaxed(counts, frames, time.perf_counter() - began)


def _middle(values: Any, centre: Sequence[int]) -> NDArray[np.float64]:
    """Return values at faces or edges interpolated to cell centres."""
    for axis, staggered in enumerate(centre):
        if staggered:
            values = centred(values, axis, values.shape[axis] - 1)
    return np.asarray(values)


def _length(parts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.sqrt(sum((part * part for part in parts), np.zeros_like(parts[0])))


def difference(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the mean over the points of |one - other| / |one|, in %; small values count as `LEAST` of the largest."""
    return 100.0 * float(np.mean(share(one, other)))


def share(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return |one - other| / |one| point by point."""
    floor = max(LEAST * float(np.abs(one).max()), np.finfo(np.float64).tiny)
    return np.asarray(np.abs(one - other) / np.maximum(np.abs(one), floor))


def measure(how: Sizes, say: Say, pictures: Path | None) -> dict[str, Any]:
    """Compute all tables as data; write pictures of Figs. 6 and 7 to a directory."""
    began = time.perf_counter()
    result: dict[str, Any] = {
        "sizes": asdict(how),
        "same bits on ranks": same_bits(how, say),
        "table 1": table_1(how, say),
        "tables 2 to 4": tables_2_to_4(how, say),
        "figures": figures(how, say, pictures),
    }
    return result | {"seconds": round(time.perf_counter() - began, 1)}


def cell(planes: int, how: Sizes) -> Problem:
    """Return the problem of Tables 2 to 4, with a fixed length."""
    return soft_cell({"y": planes, "z": how.gap}, dt=0.01, steps=how.steps, gravity=1e7)


def longer_cell(planes: int, how: Sizes) -> Problem:
    """Return the problem of Table 1: planes of a fixed height, in the same field."""
    length = LAYER * planes
    return soft_cell(
        {"y": planes, "z": how.gap}, dt=SHORT, steps=how.steps, voltage=FIELD * length, gravity=1e7, length=length
    )


def same_bits(how: Sizes, say: Say) -> bool:
    """Return whether p blocks on one rank give the bits of p virtual ranks."""
    problem, blocks = cell(how.planes[0], how), how.blocks[0]
    settings = RelaxationOptions("boundary-first", criterion="update", tolerance=how.loose)
    one, several = (relax(problem, settings, blocks, 1, ranks) for ranks in (1, blocks))
    same = all(np.array_equal(one.frames[0][name], several.frames[0][name]) for name in one.frames[0])
    say(f"{blocks} blocks on one rank and on {blocks} virtual ranks: {'the same bits' if same else 'OTHER BITS'}")
    return same and one.sweeps == several.sweeps


def table_1(how: Sizes, say: Say) -> list[dict[str, Any]]:
    """Return differences between one and several blocks after the last step, by end of relaxation, order, planes."""
    early, late = (RelaxationOptions("lexicographic", criterion="update", tolerance=t) for t in (how.early, how.late))
    cases = [
        ("early", early, how.longer),
        ("late", late, how.longer[:2]),
        ("red-black", replace(early, order="red-black"), how.longer[:1]),
    ]
    rows = []
    for name, settings, planes in cases:
        for many in planes:
            problem = longer_cell(many, how)
            alone = relax(problem, settings, 1, how.steps)
            for blocks in how.blocks:
                found = relax(problem, settings, blocks, how.steps)
                percent = {
                    field: difference(alone.frames[-1][field], found.frames[-1][field]) for field in PAPER_DIFFERENCES
                }
                rows.append({"end": name, "planes": many, "blocks": blocks, "percent": percent})
                say(f"table 1: {name}, {many} planes, {blocks} blocks: psi differs by {percent['|psi|']:.3g} %")
    return rows


def tables_2_to_4(how: Sizes, say: Say) -> list[dict[str, Any]]:
    """Return the sweeps of every time step, lexicographic and boundary-first."""
    rows = []
    for planes in how.planes:
        for blocks in how.blocks:
            row: dict[str, Any] = {"planes": planes, "blocks": blocks}
            for order in ("lexicographic", "boundary-first"):
                settings = RelaxationOptions(order, criterion="update", tolerance=how.loose)
                row[order] = relax(cell(planes, how), settings, blocks, how.steps).sweeps
            first, second = sum(row["lexicographic"]), sum(row["boundary-first"])
            row["more"] = 100.0 * (second - first) / first
            rows.append(row)
            say(f"tables 2-4: {planes} planes, {blocks} blocks: {first} and {second} sweeps, {row['more']:+.2f} %")
    return rows


def figures(how: Sizes, say: Say, pictures: Path | None) -> dict[str, Any]:
    """Return where the differences lie: of psi with three blocks, and of the anions around three fingers.

    Relaxations that end early leave the differences where they arise; later sweeps spread them into the smoothest wave.
    """
    long, wide = how.picture
    rolls = soft_cell({"y": long, "z": wide}, dt=0.01, steps=4, gravity=1e7)
    fingers = soft_cell({"y": long, "x": wide}, dt=0.01, steps=5, voltage=5.0, fingers=True)
    found: dict[str, Any] = {}
    for number, problem, field, steps, end in ((6, rolls, "|psi|", 4, 5e-2), (7, fingers, "A", 5, 1e-2)):
        settings = RelaxationOptions("lexicographic", criterion="update", tolerance=end)
        alone, apart = (relax(problem, settings, b, steps) for b in (1, 3))
        pairs = [(a[field], b[field]) for a, b in zip(alone.frames, apart.frames, strict=True)]
        if field == "|psi|":  # relative to the largest psi: the same scale everywhere
            where = [100.0 * np.abs(a - b) / a.max() for a, b in pairs]
        else:
            where = [100.0 * share(a, b) for a, b in pairs]
        found[f"figure {number}"] = {
            "field": field,
            "end": end,
            "largest percent": [float(w.max()) for w in where],
            "by plane": [np.round(w.mean(axis=1), 9).tolist() for w in where],
            "first planes of blocks": [round(long / 3), round(2 * long / 3)],
            "place of the largest": [list(map(int, np.unravel_index(w.argmax(), w.shape))) for w in where],
        }
        if pictures is not None:
            from minga.view.differences import draw_differences

            path = pictures / f"milano-figure-{number}.png"
            title = f"Difference of {field}, one block and three, %"
            draw_differences(where, problem.grid, problem.kinds, title, path)
            found[f"figure {number}"]["picture"] = str(path)
            say(f"wrote {path}")
    return found


def tables(result: Mapping[str, Any]) -> str:
    """Return the results as text, next to those of the paper."""
    lines = ["Table 1. Mean difference of one and several blocks, %; in brackets the paper's at 32, 96, 128 planes"]
    planes = result["sizes"]["longer"]
    blocks = result["sizes"]["blocks"]
    for name, title in (
        ("early", f"ended at updates of {result['sizes']['early']:g}, as the paper does"),
        ("late", f"ended at updates of {result['sizes']['late']:g}"),
        ("red-black", "red-black order"),
    ):
        lines.append(f"  {title}")
        lines.append("  " + " " * 18 + "".join(f"{f'{b} blocks':>20}" for b in blocks))
        for field, paper in PAPER_DIFFERENCES.items():
            for many, printed in zip(planes, paper.values(), strict=False):
                found = {r["blocks"]: r for r in result["table 1"] if (r["end"], r["planes"]) == (name, many)}
                if not found:
                    continue
                cells = [f"{found[b]['percent'][field]:.2g} ({p:g})" for b, p in zip(blocks, printed, strict=False)]
                lines.append(f"  {field:10}{many:>4}    " + "".join(f"{c:>20}" for c in cells))
    lines.append("")
    lines.append("Tables 2-4. Sweeps in all steps, lexicographic and boundary-first; in brackets the paper's")
    for (_, paper_rows), many in zip(PAPER_SWEEPS.items(), result["sizes"]["planes"], strict=False):
        for row in result["tables 2 to 4"]:
            if row["planes"] == many:
                one, two = paper_rows[row["blocks"]]
                counts = f"{sum(row['lexicographic']):>6}{sum(row['boundary-first']):>7}  {row['more']:+.2f} %"
                steps = " ".join(map(str, row["lexicographic"]))
                beside = f"({one} {two} {100 * (two - one) / one:+.2f} %)"
                lines.append(f"  {many:>4} planes {row['blocks']} blocks {counts}  {beside}  steps {steps}")
    lines.append("")
    for name, figure in result["figures"].items():
        largest = ", ".join(f"{value:.2g}" for value in figure["largest percent"])
        planes = ", ".join(str(place[0]) for place in figure["place of the largest"])
        borders = " and ".join(map(str, figure["first planes of blocks"]))
        lines.append(
            f"{name.capitalize()}. Largest difference of {figure['field']} by step: {largest} %, in planes {planes}; "
            f"blocks begin at planes {borders}"
        )
    return "\n".join(lines)
