"""Circuit of a device over time: a source, resistance and inductance in series, and a capacitance beside the device.

    L dI/dt = Vs - R I - V,      (C + Cg) dV/dt = I - J

J is the conduction current that the terminals see, the mean over all edges weighted with h/eps, and Cg dV/dt the
displacement current that belongs to it: their sum is the current of every plane of the device. Everything is per area.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang.expr import Node, as_node
from minga.models.photodiode.solver.circuit import Circuit
from minga.space.field import Register

__all__ = ["Loop", "PerArea", "per_area"]


@dataclass(frozen=True, slots=True)
class PerArea:
    """Elements of the circuit, per area of the device.

    Attributes
    ----------
    resistance
        Series resistance times area, ohm cm2.
    inductance
        Series inductance times area, H cm2.
    capacitance
        Capacitance beside the device over the area, F/cm2.
    """

    resistance: float = 0.0
    inductance: float = 0.0
    capacitance: float = 0.0

    @property
    def external(self) -> bool:
        """True if the device's voltage differs from that of the source."""
        return self.resistance > 0.0 or self.inductance > 0.0


def per_area(circuit: Circuit | None) -> PerArea:
    """Return the elements of a circuit per area; None: none.

    Raises
    ------
    CaseError
        If the pad would have no effect, or is not beside the device itself.
    """
    if circuit is None:
        return PerArea()
    if circuit.pad and not (circuit.load or circuit.inductance):
        raise CaseError(
            "a capacitance beside a device whose voltage is that of the source",
            key="photodiode.transient.pad",
            remedy="give a load or an inductance, or leave the pad out",
        )
    if circuit.pad and circuit.series:
        raise CaseError(
            "a series resistance between the device and a pad, in a transient",
            key="photodiode.transient.series",
            remedy="add it to the load, or leave the pad out",
        )
    area = circuit.area
    return PerArea((circuit.load + circuit.series) * area, circuit.inductance * area, circuit.pad / area)


@dataclass(frozen=True, eq=False)
class Loop:
    """Recorder of the circuit's equations in the stages of a step; voltages in V, currents in A/cm2.

    Attributes
    ----------
    before
        Current of the source at the beginning of the step.
    constant, share
        Current of the source in the present stage: constant - share times the increment of the voltage since the
        beginning of the step. As a function of the voltage itself, its last digit over a small resistance would be
        more than the current of a device in reverse bias.
    charging
        I - J at the beginning of the step and at the inner point: the current that changes the voltage.
    rest
        Voltage of the inductance at the same times.
    """

    circuit: PerArea
    storage: float
    before: Register = field(default_factory=lambda: Register("source current before"))
    constant: Register = field(default_factory=lambda: Register("source current at the voltage before"))
    share: Register = field(default_factory=lambda: Register("source current per volt"))
    charging: tuple[Register, Register] = field(
        default_factory=lambda: (Register("charging early"), Register("charging inside"))
    )
    rest: tuple[Register, Register] = field(
        default_factory=lambda: (Register("inductive early"), Register("inductive inside"))
    )

    def begin(self, program: Program, source: Any, voltage: Any, conduction: Any) -> None:
        """Record the currents at the beginning of a step, where the source may have jumped."""
        circuit = self.circuit
        if not circuit.inductance:
            program.let(self.before, (source - voltage) / circuit.resistance)
        program.let(self.charging[0], self.before - conduction)
        program.let(self.rest[0], source - circuit.resistance * self.before - voltage)

    def prepare(self, program: Program, source: Any, voltage: Any, own: Any, early: Any, inner: Any) -> None:
        """Record the source's current of a stage as a linear function of the increment of the voltage.

        Parameters
        ----------
        program
            The Program.
        source
            Source voltage at the stage, V.
        voltage
            Voltage of the device at the beginning of the step, V.
        own, early, inner
            Weights of the stage's own rates and of the earlier ones, times the length of the step, s.
        """
        circuit = self.circuit
        if not circuit.inductance:
            program.let(self.share, 1.0 / circuit.resistance)
            program.let(self.constant, (source - voltage) * self.share)
            return
        program.let(self.share, own / (circuit.inductance + own * circuit.resistance))
        past = circuit.inductance * self.before + early * self.rest[0] + inner * self.rest[1]
        program.let(self.constant, (past + own * (source - voltage)) / (circuit.inductance + own * circuit.resistance))

    def gap(self, grown: Any, conduction: Any, own: Any, early: Any, inner: Any) -> Node:
        """Return the residual of the voltage's equation, C/cm2; `grown` is the increment of the voltage, V."""
        moved = own * (self.at(grown) - conduction) + early * self.charging[0] + inner * self.charging[1]
        return as_node(self.storage * grown - moved)

    def at(self, grown: Any) -> Node:
        """Return the source's current in the present stage, after an increment of the device's voltage."""
        return as_node(self.constant - self.share * grown)

    def inside(self, program: Program, source: Any, voltage: Any, grown: Any, conduction: Any) -> None:
        """Record the currents at the inner point."""
        current = self.at(grown)
        program.let(self.charging[1], current - conduction)
        program.let(self.rest[1], source - self.circuit.resistance * current - voltage)

    def defect(
        self, source: Any, voltage: Any, grown: Any, conduction: Any, own: Any, weights: tuple[float, ...], h: Any
    ) -> Node:
        """Return the estimated error of the charge of the capacitances in a step, C/cm2."""
        early, inner, late = weights
        charge = h * (early * self.charging[0] + inner * self.charging[1] + late * (self.at(grown) - conduction))
        if not self.circuit.inductance:
            return as_node(charge)
        after = source - self.circuit.resistance * self.at(grown) - voltage
        flux = h * (early * self.rest[0] + inner * self.rest[1] + late * after)
        return as_node(charge + own * flux / (self.circuit.inductance + own * self.circuit.resistance))
