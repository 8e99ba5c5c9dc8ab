"""The one table of integrators by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from minga.errors import ProgramError, suggest
from minga.solve.integrators import imex, implicit, stages
from minga.solve.integrators.adaptive import adaptive
from minga.solve.integrators.etdrk4 import etdrk4
from minga.solve.integrators.explicit import Kicks, explicit
from minga.solve.integrators.method import Integrator
from minga.solve.integrators.stochastic import maruyama, milstein
from minga.solve.integrators.workspace import Recorded

__all__ = ["INTEGRATORS", "integrator"]


def _explicit(
    name: str, order: int, real: float, imaginary: float, table: tuple[stages.Stage, ...], swing: float = 0.3
) -> Integrator:
    return Integrator(name, order, real, imaginary, explicit(name, table), swing=swing)


def _adaptive(
    name: str, order: int, real: float, imaginary: float, table: tuple[stages.Stage, ...], error: Mapping[str, float]
) -> Integrator:
    return Integrator(name, order, real, imaginary, adaptive(name, order, table, error), adaptive=True)


def _noisy(name: str, kicks: Kicks) -> Integrator:
    return Integrator(name, 1, 2.0, 0.0, explicit(name, stages.EULER, kicks), stochastic=True, swing=0.002)


def _imex(
    name: str, order: int, real: float, imaginary: float, recorder: Callable[..., Recorded], swing: float,
    waves: bool = True,
) -> Integrator:  # fmt: skip
    return Integrator(name, order, real, imaginary, recorder, swing=swing, waves=waves, split=True, differentiates=True)


def _newton(name: str, *, multistep: bool) -> Integrator:
    step, given = implicit.chosen(multistep), implicit.given(multistep)
    return Integrator(name, 2, math.inf, math.inf, step, adaptive=True, given=given, differentiates=True)


INTEGRATORS: Final[Mapping[str, Integrator]] = {
    item.name: item
    for item in (
        _explicit("euler", 1, 2.0, 0.0, stages.EULER, 0.002),
        _noisy("euler-maruyama", maruyama),
        _noisy("milstein", milstein),
        _explicit("heun", 2, 2.0, 0.0, stages.HEUN, 0.2),
        _explicit("ssprk3", 3, 2.512745, 1.732050, stages.SSPRK3),
        _explicit("ssprk43", 3, 5.149486, 2.156179, stages.SSPRK43),
        _explicit("williamson3", 3, 2.512745, 1.732050, stages.WILLIAMSON3),
        _explicit("rk4", 4, 2.785293, 2.828427, stages.RK4),
        _imex("imex-euler", 1, 2.0, 0.0, imex.runge_kutta("imex-euler", imex.EULER), 0.002),
        _imex("cnab2", 2, 1.0, 0.0, imex.multistep("cnab2", "cnab2"), 0.156, False),
        _imex("sbdf2", 2, 1.333333, 0.0, imex.multistep("sbdf2", "sbdf2"), 0.053),
        _imex("ars222", 2, 2.0, 0.0, imex.runge_kutta("ars222", imex.ARS222), 0.09),
        _imex("ars443", 3, 2.143159, 1.569854, imex.runge_kutta("ars443", imex.ARS443), 0.22),
        _newton("tr-bdf2", multistep=False),
        _newton("bdf2", multistep=True),
        Integrator("etdrk4", 4, math.inf, math.inf, etdrk4, modal=True),
        _adaptive("bs3", 3, 2.512745, 1.732050, stages.BS3, stages.BS3_ERROR),
        _adaptive("dp5", 5, 3.306567, 0.997189, stages.DP5, stages.DP5_ERROR),
    )
}
"""The integrators by name; their limits of stability, and of what they resolve, are rounded down."""


_ELSEWHERE: Final = {
    "rk45": "dp5", "dopri5": "dp5", "ode45": "dp5", "dormand-prince": "dp5", "rk23": "bs3", "ode23": "bs3",
    "bdf": "bdf2", "lsoda": "tr-bdf2", "radau": "tr-bdf2", "ode15s": "tr-bdf2", "implicit": "tr-bdf2",
    "crank-nicolson": "cnab2", "imex": "ars222", "rk2": "heun", "rk3": "ssprk3", "forward-euler": "euler",
    "explicit": "bs3", "etd": "etdrk4",
}  # fmt: skip
"""The integrators that are nearest to those of other programs, by their names there."""


def integrator(name: str) -> Integrator:
    """Return an integrator by its name.

    Parameters
    ----------
    name
        "euler", "heun", "ssprk3", "ssprk43", "williamson3", "rk4" with steps of a given length; "imex-euler", "cnab2",
        "sbdf2", "ars222", "ars443", whose linear part is implicit; "bs3", "dp5", which choose their steps; "tr-bdf2",
        "bdf2", which are implicit; "euler-maruyama" and "milstein" with noise; "etdrk4"
        on periodic boxes.

    Returns
    -------
    Integrator
        The method.

    Raises
    ------
    ProgramError
        If there is no such integrator.
    """
    if name not in INTEGRATORS:
        close = _ELSEWHERE.get(str(name).lower().replace("_", "-")) or suggest(str(name), INTEGRATORS)
        raise ProgramError(
            f"no integrator {name!r}",
            remedy=f"did you mean {close!r}?" if close else f"there are {', '.join(INTEGRATORS)}",
        )
    return INTEGRATORS[name]
