"""Tables 1 to 4, Figs. 6 and 7: effects of cutting the grid into blocks, and of the order of a sweep.

They are counts and differences, not times, and do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.models.electrodeposition.problem import FLUID, Problem
from minga.models.electrodeposition.relaxation.options import RelaxationOptions
from minga.models.electrodeposition.soft import soft_cell
from minga.studies.experiments import Bench
from minga.studies.figures import panel
from minga.studies.milano.paper import DIFFERENCES, SWEEPS
from minga.studies.milano.relaxing import difference, relax, share

__all__ = ["Sizes", "figure_6", "figure_7", "sizes", "sweeps_of", "table_1"]

Result = dict[str, Any]

ORDERS: Final = ("lexicographic", "boundary-first")
LAYER: Final = 0.04
"""Height of the planes of Table 1: twice the Debye length."""
SHORT: Final = 3e-4
"""Time step of Table 1, in which changes at an electrode do not reach the middle of a block of many planes."""
FIELD: Final = 20.0
"""Field in RT/F per unit of length."""
STEP: Final = 3e-3
"""Time step of Tables 2 to 4."""
PLANE: Final = 0.02
"""Height of the planes of Tables 2 to 4, the Debye length; as in Table 1, more planes are a longer cell."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Extent of the experiments on sweeps.

    Attributes
    ----------
    longer
        Planes along y in Table 1; the length of the cells is proportional to them.
    across
        Grid cells across the gap in Table 1.
    planes
        Planes along y in Tables 2, 3 and 4.
    gap
        Grid cells across the gap there.
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
    across: int
    planes: tuple[int, int, int]
    gap: int
    blocks: tuple[int, ...]
    steps: int
    early: float
    late: float
    loose: float
    picture: tuple[int, int]


def sizes(*, quick: bool) -> Sizes:
    """Return sizes for experiments of some seconds, or of some minutes with the paper's numbers of cells along y, z."""
    if quick:
        return Sizes((16, 32), 4, (16, 32, 64), 4, (2, 4), 2, 1e-2, 1e-5, 1e-3, (60, 24))
    return Sizes((32, 96, 128), 6, (50, 100, 200), 40, (2, 4, 8), 5, 1e-2, 1e-5, 1e-3, (60, 24))


def cell(planes: int, height: float, gap: int, *, dt: float, steps: int) -> Problem:
    """Return a cell of planes of a given height, in the same field for all lengths."""
    length = height * planes
    return soft_cell({"y": planes, "z": gap}, dt=dt, steps=steps, voltage=FIELD * length, gravity=1e7, length=length)


def updates(order: Any, tolerance: float) -> RelaxationOptions:
    """Return a relaxation that ends as the paper's: once the largest update of a sweep is small."""
    return RelaxationOptions(order, criterion="update", tolerance=tolerance)


# Table 1 ----------------------------------------------------------------------------------------------------------
def same_bits(how: Sizes) -> bool:
    """Return whether p blocks on one rank give the bits and the sweeps of p virtual ranks."""
    problem, blocks = cell(how.longer[0], LAYER, how.across, dt=SHORT, steps=1), how.blocks[0]
    one, several = (relax(problem, updates("boundary-first", how.early), blocks, 1, ranks) for ranks in (1, blocks))
    same = all(np.array_equal(one.frames[0][name], several.frames[0][name]) for name in one.frames[0])
    return same and one.sweeps == several.sweeps


def table_1(bench: Bench) -> Result:
    """Compare one block and several after the last step: with early ends, late ends, and in red-black order."""
    how = sizes(quick=bench.quick)
    early, late = (updates("lexicographic", t) for t in (how.early, how.late))
    cases = [
        ("early", early, how.longer),
        ("late", late, how.longer[:2]),
        ("red-black", replace(early, order="red-black"), how.longer[:1]),
    ]
    found: dict[str, dict[int, dict[int, dict[str, float]]]] = {}
    for end, settings, planes in cases:
        for many in planes:
            problem = cell(many, LAYER, how.across, dt=SHORT, steps=how.steps)
            alone = relax(problem, settings, 1, how.steps).frames[-1]
            for blocks in how.blocks:
                apart = relax(problem, settings, blocks, how.steps).frames[-1]
                percent = {field: difference(alone[field], apart[field]) for field in DIFFERENCES}
                found.setdefault(end, {}).setdefault(many, {})[blocks] = percent
                bench.say(f"  {end} end, {many} planes, {blocks} blocks: psi differs by {percent['|psi|']:.3g} %")
    return {
        "claim": "Serial and parallel results differ: the more, the more processes and the fewer planes; at 32 planes "
        "and 8 processes psi by 74 %.",
        "table": _differences(found),
        "tolerances": {"early": how.early, "late": how.late, "red-black": how.early},
        "measured": {"percent": found},
        "shape": _judged(found, how) | {"p blocks on one rank give the bits of p ranks": same_bits(how)},
    }


def _differences(found: Mapping[str, Mapping[int, Mapping[int, Mapping[str, float]]]]) -> list[Result]:
    """Return a row for each end, field and number of planes: percent here, in brackets the paper's."""
    rows = []
    for end, by_planes in found.items():
        for field, paper in DIFFERENCES.items():
            for (many, by_blocks), printed in zip(by_planes.items(), paper.values(), strict=False):
                row: Result = {"end": end, "field": field, "planes": many}
                for (blocks, percent), value in zip(by_blocks.items(), printed, strict=False):
                    row[f"{blocks} blocks"] = f"{percent[field]:.2g} ({value:g})"
                rows.append(row)
    return rows


def _judged(found: Mapping[str, Mapping[int, Mapping[int, Mapping[str, float]]]], how: Sizes) -> dict[str, bool]:
    """Return the statements about Table 1."""
    few, more = how.longer[:2]
    least, most = how.blocks[0], how.blocks[-1]
    early = found["early"]
    growing = {
        "at the fewest planes every field differs more with more blocks": all(
            early[few][most][field] > early[few][least][field] for field in DIFFERENCES
        )
    }
    return (growing if most >= 8 else {}) | {
        "ions and potential differ less than a fifth as much in the longer cell": all(
            early[more][least][field] < 0.2 * early[few][least][field] for field in ("A", "potential")
        ),
        "a tolerance a thousand times smaller divides every difference by more than 20": all(
            early[few][most][field] > 20 * found["late"][few][most][field] > 0 for field in DIFFERENCES
        ),
        "in red-black order there is no difference": all(
            value == 0.0
            for blocks in found["red-black"].values()
            for fields in blocks.values()
            for value in fields.values()
        ),
    }


# Tables 2 to 4 ----------------------------------------------------------------------------------------------------
def sweeps_of(number: int, bench: Bench) -> Result:
    """Run Table 2, 3 or 4: sweeps of every time step, in lexicographic order and boundary-first, beside the paper's."""
    how = sizes(quick=bench.quick)
    planes = how.planes[number - 2]
    points, printed = list(SWEEPS.items())[number - 2]
    rows: list[Result] = []
    shape = {}
    for blocks in how.blocks:
        counts = {order: _counted(bench, planes, blocks, order) for order in ORDERS}
        paper = dict(zip(ORDERS, printed[blocks][:2], strict=True))
        totals = {order: sum(counts[order]) for order in ORDERS}
        more = 100.0 * (totals["boundary-first"] / totals["lexicographic"] - 1.0)
        rows += [_beside(blocks, k + 1, counts, paper, lambda steps, at=k: steps[at]) for k in range(how.steps)]
        rows.append(_beside(blocks, "all", counts, paper, sum) | {"more": f"{more:.2f} % ({printed[blocks][2]:.2f} %)"})
        bench.say(f"  {planes} planes, {blocks} blocks: {totals} sweeps, {more:+.2f} %")
        if not bench.quick:
            shape[f"boundary-first takes at most 5 % more sweeps on {blocks} blocks"] = more < 5.0
            ratio = totals["lexicographic"] / sum(paper["lexicographic"])
            shape[f"all sweeps on {blocks} blocks are within a factor 2 of the paper's"] = 0.5 < ratio < 2.0
    return {
        "claim": f"{points} planes: boundary-first takes {printed[2][2]}, {printed[4][2]} and {printed[8][2]} % more "
        "sweeps with 2, 4 and 8 processes.",
        "table": rows,
        "cells": [planes, how.gap],
        "end": f"largest update below {how.loose:g}",
        "shape": shape,
    }


def _counted(bench: Bench, planes: int, blocks: int, order: str) -> list[int]:
    """Return the sweeps of the time steps of one run."""
    how = sizes(quick=bench.quick)
    problem = cell(planes, PLANE, how.gap, dt=STEP, steps=how.steps)
    return bench.once(
        f"{planes} planes, {blocks} blocks, {order}",
        lambda: relax(problem, updates(order, how.loose), blocks, how.steps).sweeps,
    )


def _beside(
    blocks: int, step: int | str, ours: Mapping[str, Sequence[int]], paper: Mapping[str, Sequence[int]], take: Any
) -> Result:
    """Return a row of counts with the paper's in brackets."""
    return {"processes": blocks, "step": step} | {o: f"{take(ours[o])} ({take(paper[o])})" for o in ORDERS}


# Figs. 6 and 7 ----------------------------------------------------------------------------------------------------
def figure_6(bench: Bench) -> Result:
    """Locate the differences of psi between one block and three."""
    how = sizes(quick=bench.quick)
    long, wide = how.picture
    problem = soft_cell({"y": long, "z": wide}, dt=0.01, steps=4, gravity=1e7)
    pairs = _pairs(problem, "|psi|", 4, 5e-2)
    where = [
        100.0 * np.abs(a - b) / a.max() for a, b in pairs
    ]  # relative to the largest psi: the same scale everywhere
    found = _located(where, "|psi|", problem, long)
    largest = found["largest percent"]
    return {
        "claim": "The differences of psi are largest on the exchange planes, decrease inwards, and stay as large in "
        "all time steps.",
        **found,
        "shape": {
            "the largest difference lies within two planes of an exchange, in every step": all(
                _beside_exchange(place[0], long, 2) for place in found["places"]
            ),
            "it changes by less than a factor 4 between the steps": max(largest) < 4 * min(largest),
        },
    }


def figure_7(bench: Bench) -> Result:
    """Locate the differences of the anions around three fingers."""
    how = sizes(quick=bench.quick)
    long, wide = how.picture
    problem = soft_cell({"y": long, "x": wide}, dt=0.01, steps=5, voltage=5.0, fingers=True)
    pairs = _pairs(problem, "A", 5, 1e-2)
    found = _located([100.0 * share(a, b) for a, b in pairs], "A", problem, long)
    largest = found["largest percent"]
    return {
        "claim": "With three fingers the anions differ near the surfaces of the fingers, and less with time.",
        **found,
        "shape": {
            "the largest difference touches a finger or an exchange plane, in every step": all(
                _touches(problem, place) or _beside_exchange(place[0], long, 1) for place in found["places"]
            ),
            "it is smaller in the last step than in the first": largest[-1] < largest[0],
        },
    }


def _pairs(problem: Problem, field: str, steps: int, end: float) -> list[tuple[NDArray[np.float64], ...]]:
    """Return a field after every step, from one block and from three.

    Relaxations that end early leave the differences where they arise; later sweeps spread them into the smoothest wave.
    """
    alone, apart = (relax(problem, updates("lexicographic", end), b, steps) for b in (1, 3))
    return [(a[field], b[field]) for a, b in zip(alone.frames, apart.frames, strict=True)]


def _located(where: Sequence[NDArray[np.float64]], field: str, problem: Problem, long: int) -> Result:
    """Return sizes and places of differences, their means by plane as a panel, and how to draw them."""

    def draw(path: Path, title: str) -> None:
        from minga.view.differences import draw_differences

        draw_differences(where, problem.grid, problem.kinds, title, path)

    by_plane = {f"step {number}": w.mean(axis=1).tolist() for number, w in enumerate(where, 1)}
    return {
        "largest percent": [float(w.max()) for w in where],
        "places": [list(map(int, np.unravel_index(w.argmax(), w.shape))) for w in where],
        "first planes of blocks": _borders(long),
        "panels": [panel(range(long), by_plane, "plane", f"mean difference of {field}, %")],
        "draw": draw,
    }


def _borders(long: int) -> list[int]:
    return [round(long / 3), round(2 * long / 3)]


def _beside_exchange(plane: int, long: int, within: int) -> bool:
    return any(-within <= plane - border < within for border in _borders(long))


def _touches(problem: Problem, place: Sequence[int]) -> bool:
    """Return whether a cell has metal among its neighbours along the axes or diagonally."""
    assert problem.kinds is not None
    around = tuple(slice(max(0, n - 1), n + 2) for n in place)
    return bool(np.any(problem.kinds[around] != FLUID))


TABLES: Final = {f"table-{number}": partial(sweeps_of, number) for number in (2, 3, 4)}
"""Tables 2 to 4 by name."""
