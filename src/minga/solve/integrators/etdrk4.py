"""The exponential integrator of fourth order, ETDRK4, on periodic boxes.

The linear part of the rates is integrated exactly, mode by mode, so that it limits no step. Its coefficients lose all
digits near 0 when they are computed as they are written; their mean over a circle in the complex plane loses none.

Sources: S. M. Cox, P. C. Matthews, J. Comput. Phys. 176 (2002) 430. A.-K. Kassam, L. N. Trefethen, SIAM J. Sci. Comput.
26 (2005) 1214.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from minga.compile.explain import Kernel
from minga.engine.program import Program
from minga.lang.expr import cast
from minga.lang.math import cos, exp, sin
from minga.solve.fft.stencils import modal_rates
from minga.solve.integrators.explicit import Given, length
from minga.solve.integrators.workspace import Recorded
from minga.solve.modal_rates import ModalOperator, ModalRates
from minga.solve.rates import Rates
from minga.space.field import Field, Register, Slot

__all__ = ["etdrk4"]

POINTS: Final = 32
"""Points of the upper half of the circle."""
_NAMES: Final = ("whole", "half", "q", "f1", "f2", "f3")


def etdrk4(
    program: Program, rates: ModalRates | Rates, fields: tuple[Field, ...], dt: float | Register | None, **_: object
) -> Recorded:  # fmt: skip
    """Record a step of a given length."""
    step = length("etdrk4", dt)
    if isinstance(rates, ModalRates):
        return _Recording(program, rates, fields).step(step)
    modal = modal_rates(rates, fields)
    recorded = _Recording(program, modal, fields).step(step)
    return replace(recorded, fields=(*modal.fields, *recorded.fields), hierarchies=(modal.fft,))


class _Recording:
    """The recording of a step for some fields."""

    def __init__(self, program: Program, rates: ModalRates, fields: tuple[Field, ...]) -> None:
        self.program, self.rates, self.fields, self.fft = program, rates, fields, rates.fft
        self.here = (0,) * fields[0].grid.ndim
        leaders = fields[:: self.parts]
        self.spectra = {
            level: tuple(self.fft.spectrum(f"{item.name}@{level}") for item in leaders)
            for level in ("now", "a", "b", "n", "na", "nb")
        }
        self.coefficients = tuple(
            tuple(
                Field(f"{item.name}@{name}{part}", self.fft.modes)
                for name in _NAMES
                for part in (("",) if linear.real else (" re", " im"))
            )
            for item, linear in zip(leaders, rates.linear, strict=True)
        )

    @property
    def parts(self) -> int:
        """Number of fields of an unknown."""
        return 2 if self.fft.complex else 1

    def unknowns(self, slots: Sequence[Slot]) -> list[Sequence[Slot]]:
        """Return the slots of each unknown."""
        return [slots[at : at + self.parts] for at in range(0, len(slots), self.parts)]

    def step(self, dt: float | Register) -> Recorded:
        """Record the step."""
        program = self.program
        time = Given(program, dt)
        self.renew(dt)
        now, following = [item.now for item in self.fields], [item.next for item in self.fields]
        for value, spectrum in zip(self.unknowns(now), self.spectra["now"], strict=True):
            self.fft.forward(program, value, spectrum)
            if self.rates.keep is not None:
                self.rates.keep(program, spectrum)
        if self.rates.keep is not None:
            self.evaluate("now", "n", following)
        else:
            self.rates.nonlinear(program, now, self.spectra["now"], self.spectra["n"])
        time.set(0.5)
        self.combine("a", half=("now", 1.0), q={"n": 1.0})
        self.evaluate("a", "na", following)
        self.combine("b", half=("now", 1.0), q={"na": 1.0})
        self.evaluate("b", "nb", following)
        self.combine("b", half=("a", 1.0), q={"nb": 2.0, "n": -1.0}, add={"na": ("na", "nb")})
        time.set(1.0)
        self.evaluate("b", "nb", following)
        self.combine("a", whole=("now", 1.0), f1={"n": 1.0}, f2={"na": 2.0}, f3={"nb": 1.0})
        for value, spectrum in zip(self.unknowns(following), self.spectra["a"], strict=True):
            self.fft.inverse(program, spectrum, value)
        time.end()
        program.rotate(*self.fields)
        spectra = (item for group in self.spectra.values() for spectrum in group for item in spectrum.fields)
        return Recorded((*spectra, *(item for group in self.coefficients for item in group)))

    def evaluate(self, level: str, rates: str, values: Sequence[Slot]) -> None:
        """Record the values of a stage, and the rest of its rates."""
        for value, spectrum in zip(self.unknowns(values), self.spectra[level], strict=True):
            self.fft.inverse(self.program, spectrum, value)
        self.rates.nonlinear(self.program, values, self.spectra[level], self.spectra[rates])

    def combine(self, target: str, add: Mapping[str, tuple[str, str]] | None = None, **parts: Any) -> None:
        """Record a stage: the sum of coefficients, by name, times spectra with factors; `add` adds up spectra."""
        wanted = {name: dict([part]) if isinstance(part, tuple) else part for name, part in parts.items()}
        sums = add or {}
        levels_of = [*wanted.values(), *sums.values()]
        names = tuple(dict.fromkeys(name for part in levels_of for name in part))
        for number, coefficients in enumerate(self.coefficients):
            width = len(coefficients) // len(_NAMES)
            chosen = [coefficients[_NAMES.index(name) * width + part] for name in wanted for part in range(width)]
            levels = [item for name in names for item in self.spectra[name][number].fields]
            outs = [item for name in (target, *sums) for item in self.spectra[name][number].fields]
            kernel = self.stage(list(wanted.values()), list(sums.values()), names, width)
            self.program.apply(kernel, levels, chosen, outs)

    def stage(
        self, wanted: Sequence[Mapping[str, float]], sums: Sequence[tuple[str, str]], names: Sequence[str], width: int
    ) -> Kernel:
        """Return the kernel of a stage; coefficients have one part if they are real, two otherwise."""
        here = self.here

        def stage(levels: list[Any], factors: list[Any], out: list[Any]) -> None:
            pairs = (tuple(each[here] for each in levels[at : at + 2]) for at in range(0, len(levels), 2))
            known = dict(zip(names, pairs, strict=True))
            results = []
            for position, part in enumerate(wanted):
                value = _weighted([(weight, known[name]) for name, weight in part.items()])
                factor = [each[here] for each in factors[position * width : (position + 1) * width]]
                results.append((1.0, _times(factor, value)))
            found = [_weighted(results), *(_weighted([(1.0, known[name]) for name in pair]) for pair in sums)]
            for item, part in zip(out, (part for pair in found for part in pair), strict=True):
                item[here] = part

        return Kernel(stage, name="etdrk4")

    # Coefficients --------------------------------------------------------------------------------------------------
    def renew(self, dt: float | Register) -> None:
        """Record the computation of the coefficients, whenever the length of the step has changed."""
        program, name = self.program, self.program.name
        known = Register(f"{name}.known")
        changed = known != dt
        if self.rates.renew is not None:
            changed = changed | self.rates.renew(program)
        point, angle = Register(f"{name}.point", "i8"), Register(f"{name}.angle")
        with program.when(changed):
            for number, linear in enumerate(self.rates.linear):
                points = POINTS if linear.real else 2 * POINTS
                program.apply(self.begin(linear), linear.fields, self.coefficients[number], dt=dt)
                program.let(point, 0)
                with program.repeat(points):
                    program.let(angle, (cast(point, "f8") + 0.5) * (math.pi / POINTS))
                    program.apply(
                        self.add(linear, points), linear.fields, self.coefficients[number], dt=dt,
                        x=cos(angle), y=sin(angle),
                    )  # fmt: skip
                    program.let(point, point + 1)
            program.let(known, dt)

    def begin(self, linear: ModalOperator) -> Kernel:
        """Return the kernel that computes the exponentials, and sets the means to 0."""
        here, real = self.here, linear.real

        def begin(tables: list[Any], out: list[Any], *, dt: Any) -> None:
            a, b = linear.eigenvalue(tables)
            for number, share in enumerate((1.0, 0.5)):
                size = 1.0 if a is None else exp((share * dt) * a)
                if real:
                    out[number][here] = size
                else:
                    turn = (share * dt) * b
                    out[2 * number][here], out[2 * number + 1][here] = size * cos(turn), size * sin(turn)
            for item in out[2 if real else 4 :]:
                item[here] = 0.0

        return Kernel(begin, name="etdrk4-exponentials")

    def add(self, linear: ModalOperator, points: int) -> Kernel:
        """Return the kernel that adds the values at a point of the circle to the means."""
        here, real = self.here, linear.real

        def add(tables: list[Any], out: list[Any], *, dt: Any, x: Any, y: Any) -> None:
            a, b = linear.eigenvalue(tables)
            z = (x + dt * a if a is not None else x, y + dt * b if b is not None else y)
            for number, value in enumerate(_functions(z), 2):
                value = (value[0] * (dt / points), value[1] * (dt / points))
                if real:
                    out[number][here] = out[number][here] + value[0]
                else:
                    for part in range(2):
                        item = out[2 * number + part]
                        item[here] = item[here] + value[part]

        return Kernel(add, name="etdrk4-means")


Complex = tuple[Any, Any]


def _functions(z: Complex) -> tuple[Complex, ...]:
    """Return Q, f1, f2 and f3 at a point, divided by the length of the step."""
    one = (1.0, 0.0)
    inverse = _inverse(z)
    e, half = _exp(z), _exp((0.5 * z[0], 0.5 * z[1]))
    square = _times(z, z)
    cube = _times(inverse, _times(inverse, inverse))
    q = _times(_weighted([(1.0, half), (-1.0, one)]), inverse)
    f1 = _weighted([(-4.0, one), (-1.0, z), (1.0, _times(e, _weighted([(4.0, one), (-3.0, z), (1.0, square)])))])
    f2 = _weighted([(2.0, one), (1.0, z), (1.0, _times(e, _weighted([(-2.0, one), (1.0, z)])))])
    f3 = _weighted([(-4.0, one), (-3.0, z), (-1.0, square), (1.0, _times(e, _weighted([(4.0, one), (-1.0, z)])))])
    return q, *(_times(f, cube) for f in (f1, f2, f3))


def _exp(z: Complex) -> Complex:
    size = exp(z[0])
    return size * cos(z[1]), size * sin(z[1])


def _inverse(z: Complex) -> Complex:
    size = z[0] * z[0] + z[1] * z[1]
    return z[0] / size, -z[1] / size


def _times(a: Sequence[Any], b: Complex) -> Complex:
    """Return the product of a real or complex number and a complex one."""
    if len(a) == 1:
        return a[0] * b[0], a[0] * b[1]
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _weighted(terms: Sequence[tuple[float, Complex]]) -> Complex:
    """Return a sum of complex numbers with real weights."""
    parts = [[value[k] if weight == 1.0 else weight * value[k] for weight, value in terms] for k in range(2)]
    return functools.reduce(operator.add, parts[0]), functools.reduce(operator.add, parts[1])
