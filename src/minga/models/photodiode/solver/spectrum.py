"""Small-signal quantities of a curve at the frequencies of a case, and its bandwidth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.elementary import atan2
from minga.lang.expr import Node, as_node, where
from minga.models.photodiode.solver.bandwidth import Bandwidth
from minga.models.photodiode.solver.biasing import Track
from minga.models.photodiode.solver.circuit import Circuit
from minga.models.photodiode.solver.problem import Problem, suffix
from minga.models.photodiode.solver.small_signal import Answer, SmallSignal
from minga.solve.complex_numbers import Complex
from minga.space.field import Field, Register

__all__ = ["FrequencyResponse"]

Observed = dict[str, Register | tuple[Register, ...]]

OF_VOLTAGE = ("G", "C")
OF_IMPEDANCE = ("Z_re", "Z_im", "Z_im_negative")
OF_LIGHT = ("H", "H_phase", "responsivity")
BANDWIDTHS = ("f3dB_transit", "f3dB_RC", "f3dB")


@dataclass(frozen=True, eq=False)
class FrequencyResponse:
    """Recorder of the small-signal quantities of a curve, after each voltage.

    Attributes
    ----------
    power
        Power of the light, W/cm2; None if no pairs are generated, 0 if pairs are but their light is not known.
    by_frequency
        Registers of each quantity, one for each frequency.
    frequencies
        Registers of the frequencies, Hz.
    bandwidths
        Searches for the frequencies of 3 dB.
    """

    track: Track
    problem: Problem
    power: float | None
    signal: SmallSignal = field(init=False)
    by_frequency: dict[str, tuple[Register, ...]] = field(init=False)
    frequencies: tuple[Register, ...] = field(init=False)
    bandwidths: dict[str, Bandwidth] = field(init=False)

    def __post_init__(self) -> None:
        put, name = object.__setattr__, self.track.name
        put(self, "signal", SmallSignal(self.track))
        names: list[str] = [*OF_VOLTAGE, "ac_uniformity"]
        searched: list[str] = []
        if self.problem.mode == "ac":
            names += OF_IMPEDANCE
            if self.power is not None:
                names += [item for item in OF_LIGHT if item != "responsivity" or self.power > 0.0]
                searched.append(BANDWIDTHS[0])
            if self.circuit is not None:
                names += [] if self.power is None else ["H_load"]
                searched += BANDWIDTHS[1:2] if self.power is None else BANDWIDTHS[1:]
        put(self, "by_frequency", {
            item: tuple(Register(f"{name} {item} {k}") for k in range(len(self.problem.frequencies))) for item in names
        })  # fmt: skip
        put(self, "frequencies", tuple(
            Register(f"{name} frequency {k}", initial=value) for k, value in enumerate(self.problem.frequencies)
        ))  # fmt: skip
        put(self, "bandwidths", {item: Bandwidth(f"{name} {item}") for item in searched})

    @property
    def circuit(self) -> Circuit | None:
        """The circuit around the device."""
        return self.problem.circuit

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return self.signal.fields

    @property
    def observed(self) -> Observed:
        """Registers by the name of the observable; with mode "cv" one of each quantity."""
        single, end = self.problem.mode == "cv", suffix(self.track.curve)
        found: Observed = {} if single else {"f": self.frequencies}
        found |= {f"{name}{end}": items[0] if single else items for name, items in self.by_frequency.items()}
        return found | {f"{name}{end}": item.found for name, item in self.bandwidths.items()}

    @property
    def columns(self) -> tuple[str, ...]:
        """Observables in the table of the mode."""
        single, end = self.problem.mode == "cv", suffix(self.track.curve)
        shown = OF_VOLTAGE if single else tuple(self.by_frequency)
        return *(() if single else ("f",)), *(f"{name}{end}" for name in shown)

    def record(self, program: Program) -> None:
        """Record the analysis of the present solution; without one, all quantities are NaN."""
        solved = (self.track.failed == 0) & (self.track.broken == 0)
        program.call(self._forget)
        with program.when(solved):
            self._record(program)

    def _forget(self, engine: Engine) -> None:
        for register in (*(r for items in self.by_frequency.values() for r in items),
                         *(item.found for item in self.bandwidths.values())):  # fmt: skip
            engine.write(register, math.nan)

    def _record(self, program: Program) -> None:
        name, signal = self.track.name, self.signal
        steady, unloaded = Register(f"{name} response at rest"), Register(f"{name} attenuation at rest")
        number, frequency = Register(f"{name} number", "i8"), Register(f"{name} oscillations")
        signal.linearise(program)
        signal.factorise(program, as_node(0.0))
        self._solve(program)
        program.let(steady, signal.response.re if self.power is not None else 1.0)
        program.let(unloaded, self._attenuation().re)
        scratch = {item: Register(f"{name} {item}") for item in self.by_frequency}
        program.let(number, 0)
        with program.repeat(len(self.problem.frequencies)):
            program.let(frequency, mg.lookup(np.array(self.problem.frequencies), number))
            signal.factorise(program, frequency)
            self._solve(program)
            for item, value in self._values(steady, unloaded).items():
                program.let(scratch[item], value)
            program.call(self._keeper(number, scratch))
            program.let(number, number + 1)
        self._bandwidths(program, steady, unloaded)

    def _solve(self, program: Program) -> None:
        self.signal.solve(program, self.signal.admittance)
        if self.power is not None:
            self.signal.solve(program, self.signal.response)

    def _keeper(self, number: Register, scratch: dict[str, Register]) -> Callable[[Engine], None]:
        """Return the function that keeps the quantities at a frequency."""

        def keep(engine: Engine) -> None:
            k = int(engine.read(number))
            for name, items in self.by_frequency.items():
                engine.write(items[k], engine.read(scratch[name]))

        return keep

    def _attenuation(self) -> Complex:
        if self.circuit is None:
            return Complex(1.0, 0.0)
        return self.circuit.attenuation(_number(self.signal.admittance), self.signal.frequency)

    def _values(self, steady: Register, unloaded: Register) -> dict[str, Node]:
        """Return the quantities at the present frequency."""
        signal, ac = self.signal, self.problem.mode == "ac"
        y, w = _number(signal.admittance), signal.frequency
        found: dict[str, Any] = {"G": y.re, "C": y.im / w, "ac_uniformity": signal.admittance.uniformity}
        if ac:
            z = 1.0 / y
            found |= {"Z_re": z.re, "Z_im": z.im, "Z_im_negative": -z.im}
        if ac and self.power is not None:
            h = _number(signal.response)
            relative = _relative(h, steady)
            found |= {"H": mg.sqrt(relative.square), "H_phase": atan2(relative.im, relative.re)}
            if self.power > 0.0:
                found["responsivity"] = mg.sqrt(h.square) / self.power
            if self.circuit is not None:
                found["H_load"] = mg.sqrt(relative.square / _relative(self._attenuation(), unloaded).square)
        return found

    def _bandwidths(self, program: Program, steady: Register, unloaded: Register) -> None:
        signal = self.signal

        def transit() -> Any:
            return _relative(_number(signal.response), steady).square

        def circuit() -> Any:
            return 1.0 / _relative(self._attenuation(), unloaded).square

        parts: dict[str, Callable[[], Any]] = {
            "f3dB_transit": transit, "f3dB_RC": circuit, "f3dB": lambda: transit() * circuit(),
        }  # fmt: skip

        def square(name: str) -> Callable[[Program, Register], Any]:
            def evaluate(program: Program, frequency: Register) -> Any:
                signal.factorise(program, frequency)
                if name != "f3dB_transit":
                    signal.solve(program, signal.admittance)
                if name != "f3dB_RC":
                    signal.solve(program, signal.response)
                return parts[name]()

            return evaluate

        for name, bandwidth in self.bandwidths.items():
            bandwidth.record(program, square(name))


def _number(answer: Answer) -> Complex:
    return Complex(answer.re, answer.im)


def _relative(value: Complex, whole: Register) -> Complex:
    """Return a number over a real one; 0 for 0 / 0."""
    inverse = where(whole == 0.0, 0.0, 1.0 / where(whole == 0.0, 1.0, whole))
    return value * inverse
