"""Observables of a solution: scalar results per voltage, and fields in V, 1/cm3 and V/cm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from minga.engine.program import Program
from minga.lang.expr import Node, as_node, where
from minga.models.photodiode.solver.biasing import Biasing, Track
from minga.models.photodiode.solver.parts import record_parts
from minga.models.photodiode.solver.probes import field_strength, middle_edge, shown
from minga.models.photodiode.solver.problem import suffix
from minga.models.photodiode.solver.terminal import inner_edges
from minga.space.field import Field, Register

__all__ = ["RENAMED_OBSERVABLES", "Pictures", "record_observables"]

RENAMED_OBSERVABLES: Final = {"C": "C_quasistatic", "C_lit": "C_quasistatic_lit"}
"""Current names of observables, by their former names."""


@dataclass(frozen=True, eq=False)
class Pictures:
    """Output fields of a curve in user units.

    Attributes
    ----------
    track
        The curve.
    state
        Electric potential, and quasi-Fermi potentials in V: of electrons relative to the cathode's, of holes relative
        to the anode's.
    densities
        Densities of electrons and holes, 1/cm3.
    strength
        Field along each axis on the edges, V/cm.
    conditions
        Words that describe the light of the curve; None: those of the curve's name.
    """

    track: Track
    conditions: str | None = None
    state: tuple[Field, Field, Field] = field(init=False)
    densities: tuple[Field, Field] = field(init=False)
    strength: tuple[Field, ...] = field(init=False)

    def __post_init__(self) -> None:
        grid, end = self.track.state.grid, suffix(self.track.curve)
        where_ = (", lit" if end else ", in the dark") if self.conditions is None else self.conditions
        put = object.__setattr__

        def declare(name: str, unit: str, what: str, centre: str = "") -> Field:
            return Field(
                f"{name}{end}", grid, unit=unit, description=f"{what}{where_}", centre=(centre,) if centre else ()
            )

        put(self, "state", (
            declare("potential", "V", "electric potential"),
            declare("electron_level", "V", "quasi-Fermi potential of electrons relative to the cathode's"),
            declare("hole_level", "V", "quasi-Fermi potential of holes relative to the anode's"),
        ))  # fmt: skip
        put(
            self,
            "densities",
            (declare("electrons", "1/cm3", "density of electrons"), declare("holes", "1/cm3", "density of holes")),
        )
        put(self, "strength", tuple(
            declare("field" if grid.ndim == 1 else f"field_{axis}", "V/cm", f"electric field along {axis}", axis)
            for axis in grid.axes
        ))  # fmt: skip

    @property
    def fields(self) -> tuple[Field, ...]:
        """All output fields."""
        return *self.state, *self.densities, *self.strength

    def record(self, program: Program, biasing: Biasing) -> None:
        """Record the output fields of the last solution."""
        state, c = self.track.state, biasing.coefficients
        grid = state.grid
        program.apply(shown(grid.ndim), state.now, self.state, thermal=biasing.thermal)
        self.track.equations.densities(program, state.now, state.bias, *self.densities)
        for axis, item in enumerate(self.strength):
            inner = inner_edges(grid.shape, axis)
            program.apply(field_strength(grid.ndim, axis), state.potential.now, c.edges[axis].slope, item, region=inner)


def record_observables(
    program: Program, biasing: Biasing
) -> tuple[dict[str, Register | tuple[Register, ...]], tuple[str, ...]]:
    """Record a voltage's scalar results; return registers by name, and the column names of the I-V table."""
    problem, tracks = biasing.problem, biasing.tracks
    main = [t for t in tracks if t.ionisation == problem.ionisation]
    seen: dict[str, Register | tuple[Register, ...]] = {
        "V": _let(program, "V", biasing.volts(main[0].state.bias)),
        **{f"J{suffix(t.curve)}": _of_curve(program, main, t, "J", t.current) for t in main},
    }
    columns = list(seen)
    if problem.gain:
        seen["gain"] = _let(program, "gain", _gain(tracks))
        columns.append("gain")
    if biasing.capacitance is not None:
        for track in main:
            name, value = f"C_quasistatic{suffix(track.curve)}", biasing.capacitance.values[track.name]
            seen[name] = _of_curve(program, main, track, "C_quasistatic", value)
            columns.append(name)
    for track in main:
        parts = (
            {f"J_{name}": part for name, part in record_parts(program, track).items()} if problem.current_parts else {}
        )
        columns += [f"{name}{suffix(track.curve)}" for name in parts]
        found: dict[str, Any] = {"uniformity": track.uniformity, "E_max": track.strongest, **parts}
        if problem.ionisation:
            found["M"] = where(track.inverse > 0.0, 1.0 / where(track.inverse > 0.0, track.inverse, 1.0), math.nan)
        seen |= {f"{k}{suffix(track.curve)}": _of_curve(program, main, track, k, value) for k, value in found.items()}
        seen[f"iterations{suffix(track.curve)}"] = track.iterations
    if biasing.middle is not None:
        reached = where(biasing.reached == 0.0, math.nan, biasing.reached)
        seen["punch_through"] = _let(program, "punch_through", reached)
    if problem.ionisation:
        broken = where(main[0].breakdown == 0.0, math.nan, main[0].breakdown)
        seen["breakdown"] = _let(program, "breakdown", broken)
    for layer in biasing.coefficients.device.layers:
        seen[f"E_{layer.name}"] = biasing.layer_field(program, main[0].state.potential.now, middle_edge(layer))
    return seen, tuple(columns)


def _let(program: Program, name: str, value: object) -> Register:
    """Record a result into a register of its own."""
    register = Register(f"observed {name}")
    program.let(register, value)
    return register


def _of_curve(program: Program, main: Sequence[Track], track: Track, name: str, value: Any) -> Register:
    """Record a result of a curve: NaN if the curve, at breakdown, stays at another voltage than the first one."""
    if track is main[0] and isinstance(value, Register):
        return value
    there = track.state.bias == main[0].state.bias
    return _let(program, f"{name}{suffix(track.curve)}", value if track is main[0] else where(there, value, math.nan))


def _gain(tracks: Sequence[Track]) -> Node:
    """Return the photocurrent over that without ionisation; NaN if the curves are at different voltages."""
    dark, lit, dark_alone, lit_alone = (
        next(t for t in tracks if t.curve == curve and t.ionisation == on)
        for on in (True, False)
        for curve in ("dark", "lit")
    )
    alone = lit_alone.current - dark_alone.current
    gain = where(alone != 0.0, (lit.current - dark.current) / where(alone != 0.0, alone, 1.0), 1.0)
    # At breakdown curves end at voltages of their own, and those without ionisation go on.
    biases = [as_node(track.state.bias) for track in (dark, lit, dark_alone, lit_alone)]
    together = (biases[0] == biases[1]) & (biases[0] == biases[2]) & (biases[0] == biases[3])
    return where(together, gain, math.nan)
