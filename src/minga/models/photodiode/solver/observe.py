"""Observables of a solution: scalar results per voltage, and fields in V, 1/cm3 and V/cm."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from minga.engine.program import Program
from minga.lang.expr import as_node, where
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
    seen: dict[str, Register | tuple[Register, ...]] = {}

    def value(name: str, expression: object) -> None:
        register = Register(f"observed {name}")
        program.let(register, expression)
        seen[name] = register

    main = [t for t in tracks if t.ionisation == problem.ionisation]

    def of_curve(name: str, track: Track, register: Register) -> None:
        if track is main[0]:
            seen[name] = register
        else:  # A curve that has reached its breakdown stays at a voltage of its own.
            value(name, where(track.state.bias == main[0].state.bias, register, math.nan))

    value("V", biasing.volts(main[0].state.bias))
    for track in main:
        of_curve(f"J{suffix(track.curve)}", track, track.current)
    columns = list(seen)
    if problem.gain:
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
        value("gain", where(together, gain, math.nan))
        columns.append("gain")
    if biasing.capacitance is not None:
        for track in main:
            name = f"C_quasistatic{suffix(track.curve)}"
            of_curve(name, track, biasing.capacitance.values[track.name])
            columns.append(name)
    for track in main:
        end = suffix(track.curve)
        of_curve(f"uniformity{end}", track, track.uniformity)
        of_curve(f"E_max{end}", track, track.strongest)
        seen[f"iterations{end}"] = track.iterations
        if problem.current_parts:
            for name, part in record_parts(program, track).items():
                of_curve(f"J_{name}{end}", track, part)
                columns.append(f"J_{name}{end}")
        if problem.ionisation:
            gain = Register(f"{track.name} gain")
            program.let(gain, where(track.inverse > 0.0, 1.0 / where(track.inverse > 0.0, track.inverse, 1.0), math.nan))
            of_curve(f"M{end}", track, gain)
    if biasing.middle is not None:
        value("punch_through", where(biasing.reached == 0.0, math.nan, biasing.reached))
    if problem.ionisation:
        value("breakdown", where(main[0].breakdown == 0.0, math.nan, main[0].breakdown))
    device = biasing.coefficients.device
    for layer in device.layers:
        found = biasing.layer_field(program, main[0].state.potential.now, middle_edge(layer))
        seen[f"E_{layer.name}"] = found
    return seen, tuple(columns)
