"""Measure what returns from the layers at the ends of a model, for each kind of waves; all machines find the same.

python -m benchmarks.waves.reflections           all of them, minutes; stores benchmarks/results/reflections.json, and
                                                 puts the table into docs/waves.md
python -m benchmarks.waves.reflections --only 2  waves on two axes; --update: into the stored file
python -m benchmarks.waves.reflections --table   the stored numbers as Markdown, without measuring

A source in the middle of a model (one and two axes: 40 cells of 10 m, Ricker wavelets of 15 and of 30 Hz; three axes:
16 cells, 30 Hz; 3000 m/s) is recorded four cells from the layers, in the middle of faces, of edges and at corners, and
once more in a model so large that nothing returns. The level is the largest difference at a receiver over the largest
wave there, for the receiver where it is the highest, in dB. Runs last until the slowest waves, SV at 1296 m/s, would be
back from the outer ends of the widest layers: sponges reflect mostly there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

import minga as mg
from benchmarks.command import asked
from benchmarks.machine import by_name, measured
from benchmarks.page import PAGE, shown
from benchmarks.timing import Effort
from minga.models.waves import Cpml, Medium, PointSource, Random, Receivers, Release, Ricker, Sponge
from minga.models.waves.boundary import Face
from minga.models.waves.elastic import ElasticMedium, Force, elastic

STORED: Final = Path(__file__).parents[1] / "results" / "reflections.json"
WAVES: Final = PAGE.parent / "waves.md"
H, DT, SPEED, AWAY = 10.0, 1e-3, 3000.0, 4
FREQUENCIES: Final = {1: (15.0, 30.0), 2: (15.0, 30.0), 3: (30.0,)}
SIZES: Final = {1: (40, 620, 100), 2: (40, 1200, 205), 3: (16, 450, 76)}
"""Cells along an axis, steps, and cells added at each end for the model from whose ends nothing returns."""
LAYERS: Final[dict[str, Face]] = {
    "sponge = 10": Sponge(10),
    "sponge = 20": Sponge(20),
    "sponge = 40": Sponge(40),
    "sponge = 60": Sponge(60),
    "sponge = 40, strength = 0.16": Sponge(40, 0.16),
    "cpml = 6": Cpml(6),
    "cpml = 12": Cpml(12),
    "random = 16": Random(16),
}
TILTED: Final = "anisotropic, tilted axis"
EXPERIMENTAL: Final = {"cpml = 6": Cpml(6, experimental=True), "cpml = 12": Cpml(12, experimental=True)}
"""Layers of tilted axes in place of those that need an upright one."""
SCHEMES: Final = ("isotropic", "density", "anisotropic, vertical axis", TILTED, "elastic")


def medium_of(scheme: str, shape: tuple[int, ...]) -> Medium:
    """The medium of acoustic waves; a density varies as far as three eighths of its length from the source."""
    if scheme == "density":
        axes = np.meshgrid(
            *((np.arange(n) - n // 2) / (0.375 * SIZES[len(shape)][0]) for n in shape), indexing="ij", sparse=True
        )
        squares = sum(np.square(axis) for axis in axes)
        return Medium(SPEED, rho=2000.0 + 500.0 * np.maximum(0.0, 1.0 - squares))
    if scheme == "isotropic":
        return Medium(SPEED)
    tilt = {"theta": math.pi / 4} if scheme == TILTED else {}
    return Medium(SPEED, 0.24, 0.1, **tilt, **({"phi": 0.4} if tilt and len(shape) == 3 else {}))


@cache
def traces(scheme: str, ndim: int, frequency: float, layer: Face | None) -> np.ndarray:
    """Samples of shape (time, quantity, receiver); without a layer, in the large model."""
    n, steps, more = SIZES[ndim]
    more = more if layer is None else 0
    shape, middle = (n + 2 * more,) * ndim, (H * (n // 2 + more),) * ndim
    cells = itertools.product((AWAY, n // 2, n - 1 - AWAY), repeat=ndim)
    points = [tuple(H * (k + more) for k in cell) for cell in cells if any(k != n // 2 for k in cell)]
    common: dict[str, Any] = {
        "dt": DT, "dtype": "f8", "boundary": Release() if layer is None else layer, "receivers": Receivers(points)
    }  # fmt: skip
    if scheme == "elastic":
        rock = ElasticMedium(SPEED, 1700.0, 2200.0)
        force = Force(middle, (1.0, 0.5, 0.3)[:ndim], Ricker(frequency))
        record = ("vz", "vx") if ndim == 2 else ("vz", "vy", "vx")
        model = elastic(shape, H, medium=rock, sources=[force], record=record, **common)
    else:
        source = PointSource(middle, Ricker(frequency))
        model = mg.fletcher(shape, H, medium=medium_of(scheme, shape), sources=[source], **common)
    found = np.asarray(mg.run(model, steps, observe=1).receivers.values)
    return found.reshape(len(found), -1, len(points))


def level(scheme: str, ndim: int, frequency: float, name: str) -> float:
    """Return the level of what a layer returns, in dB."""
    layer = EXPERIMENTAL.get(name, LAYERS[name]) if scheme == TILTED else LAYERS[name]
    whole = traces(scheme, ndim, frequency, None)
    ratios = np.abs(traces(scheme, ndim, frequency, layer) - whole).max(axis=(0, 1)) / np.abs(whole).max(axis=(0, 1))
    return round(20 * math.log10(float(ratios.max())), 2)


def schemes_of(ndim: int) -> tuple[str, ...]:
    """The kinds of waves that are measured; those on one axis are isotropic."""
    return SCHEMES[:2] if ndim == 1 else SCHEMES


def names_of(scheme: str, ndim: int) -> list[str]:
    """The layers that are measured: elastic waves have none that scatter, and three axes no wide sponges."""
    return [
        name
        for name, layer in LAYERS.items()
        if not ((scheme == "elastic" and isinstance(layer, Random)) or (ndim == 3 and layer.cells > 20))
    ]


def levels(ndim: int, quick: bool) -> dict[str, dict[str, list[float]]]:
    """All levels of models with some number of axes, by scheme and layer, for each frequency; quick: few."""
    if quick:
        return {"isotropic": {"cpml = 6": [level("isotropic", ndim, 30.0, "cpml = 6")]}}
    found: dict[str, dict[str, list[float]]] = {}
    for scheme in schemes_of(ndim):
        found[scheme] = {
            name: [level(scheme, ndim, f, name) for f in FREQUENCIES[ndim]] for name in names_of(scheme, ndim)
        }
        traces.cache_clear()
    return found


AXES: Final = {"1": "one axis", "2": "two axes", "3": "three axes"}
PARTS: Final = {part: partial(levels, int(part)) for part in AXES}


def run(parts: Sequence[str], quick: bool) -> dict[str, Any]:
    """Measure these parts; what is stored."""
    return measured(lambda: by_name(PARTS, parts, quick), quick, Effort.least())


def markdown(content: Mapping[str, Any]) -> str:
    """The levels as a table."""
    lines = [f"| returns, dB | {' | '.join(f'`{name}`' for name in LAYERS)} |", "|---|" + "---|" * len(LAYERS)]
    for part, axes in AXES.items():
        for scheme, found in content.get(part, {}).items():
            cells = (", ".join(f"{round(db)}" for db in found.get(name, ())) for name in LAYERS)
            lines.append(f"| {scheme}, {axes} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Do what a person asks for."""
    options = asked("benchmarks.waves.reflections", "Measure reflections", PARTS, STORED.name, table=True, update=True)
    shown(options, "reflections", run, markdown, page=WAVES)


if __name__ == "__main__":
    main()
