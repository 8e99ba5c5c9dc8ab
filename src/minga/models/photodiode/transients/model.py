"""Model of a transient."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from minga.engine.clock import Clock
from minga.engine.engine import Engine
from minga.engine.model import Model, Over
from minga.engine.program import Program
from minga.errors import CaseError, RunError
from minga.lang.expr import where
from minga.models.photodiode.review import of_factors, of_gains
from minga.models.photodiode.solver.biasing import Biasing, Track
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.solver.failures import explainer, place_words
from minga.models.photodiode.solver.gummel import rescue_of
from minga.models.photodiode.solver.linear import check_contacts, check_linear, factorised, hierarchies_of
from minga.models.photodiode.solver.newton import Newton
from minga.models.photodiode.solver.observe import Pictures
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.solver.state import State
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.transients.problem import Transient
from minga.models.photodiode.transients.stages import Stages
from minga.models.photodiode.transients.stepping import Stepping
from minga.models.photodiode.transients.waveform import Source
from minga.models.photodiode.units import units_of
from minga.space.field import TIME, Register

__all__ = ["transient"]

BREAKDOWN: Final = 1e-2
"""1/M below which the search for a steady state has failed because of breakdown."""
MOST_STEPS: Final = 1_000_000
"""Number of steps after which a run ends in any case."""
COLUMNS = ("t", "V", "V_source", "J", "J_conduction", "J_displacement", "charge", "light")


def transient(device: Device, problem: Problem, what: Transient) -> Model:
    """Return the Model of a transient; the first step of a run finds the steady state, the others are steps in time.

    Observables: t (s), V and V_source (V), J, J_conduction and J_displacement (A/cm2), charge (C/cm2), light,
    uniformity, steps_taken and steps_rejected, and M with ionisation, as of currents at voltages; NaN beyond breakdown.

    Parameters
    ----------
    device
        The device.
    problem
        Physics and accuracy; its `bias` and `curves` are not used.
    what
        Sources, circuit and duration.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    CaseError
        If the problem cannot be solved as stated.
    """
    check_linear(problem.linear, device.grid, problem.scheme)
    check_contacts(problem.linear, device, problem.scheme)
    if problem.dead_space is not None:
        raise CaseError(
            "dead space in a transient", key="photodiode.dead_space", remedy="leave it out: ionisation is local here"
        )
    if problem.scheme != "newton":
        raise CaseError(
            f"a transient by scheme = {problem.scheme!r}", key="photodiode.scheme", remedy='write scheme = "newton"'
        )
    if what.light.extremes[1] > 0.0 and not device.generation.any():
        raise CaseError(
            "light as a function of time, but the device absorbs none",
            key="photodiode.transient.light",
            remedy="write [photodiode.light] with a wavelength and a power, or leave the wave form out",
        )
    problem = replace(
        problem, bias=(what.voltage.beginning,), current=(), curves=("dark",), gain=False, quasistatic_capacitance=False
    )
    coefficients = Coefficients(device)
    newton = Newton(
        coefficients, problem.ionisation, problem.tolerance, problem.limit, linear=problem.linear,
        keep=what.drive.external,
    )  # fmt: skip
    rescue = rescue_of(newton)
    track = Track("dark", problem.ionisation, newton, State(device.grid, "transient"), rescue)
    biasing = Biasing(
        coefficients, problem, (track,), brightness=what.light.beginning, resistance=what.drive.resistance
    )
    sources = Source(what.voltage, "voltage"), Source(what.light, "light")
    stages = Stages(what, newton, track.state, *sources, Register("dt"), Register("start of the step"))
    stepping = Stepping(what, biasing, stages)
    step, observe = Program("step"), Program("observe")
    stepping.record(step)
    pictures = Pictures(track, "")
    pictures.record(step, biasing)
    observables = _observed(observe, stepping) | factorised(observe, [newton.lines])
    return Model(
        name="photodiode",
        grid=device.grid,
        fields=(
            *pictures.fields, *track.state.fields, *rescue.fields, *biasing.terminal.sums, *stages.fields,
            *coefficients.fields,
        ),
        step=step,
        initial={**coefficients.values, **stages.currents.values},
        output=tuple(item.name for item in pictures.fields),
        observe=observe,
        observables=observables,
        units=units_of(observables),
        registers=biasing.registers,
        parameters=_parameters(device, problem, what),
        steps=MOST_STEPS,
        explain=_explainer(stepping),
        over=Over(stepping.over, _finished(stepping)),
        review=of_factors(observables, of_gains(("M",), "transient") if problem.ionisation else None),
        tables={"transient": COLUMNS},
        opening=True,
        clock=Clock(target=stepping.goal),
        hierarchies=hierarchies_of(newton.lines),
    )  # fmt: skip


def _observed(program: Program, stepping: Stepping) -> dict[str, Register | tuple[Register, ...]]:
    stages, found = stepping.stages, dict[str, Register | tuple[Register, ...]]()

    def value(name: str, expression: object) -> None:
        found[name] = Register(f"observed {name}")
        program.let(found[name], expression)  # type: ignore[arg-type]

    value("t", TIME)
    value("V", stages.source if stages.loop is None else stages.bias * stages.thermal)
    for name, register in (
        ("V_source", stages.source),
        ("J", stepping.current),
        ("J_conduction", stages.conduction),
        ("J_displacement", stepping.displacement),
        ("charge", stepping.charge),
        ("light", stages.bright),
        ("uniformity", stepping.uniformity),
        ("iterations", stages.iterations),
        ("steps_taken", stepping.taken),
        ("steps_rejected", stepping.rejected),
    ):
        found[name] = register
    if stages.newton.ionisation:
        gain = 1.0 / where(stepping.inverse > 0.0, stepping.inverse, 1.0)
        value("M", where(stepping.inverse > 0.0, gain, math.nan))
    return found


def _explainer(stepping: Stepping) -> Callable[[Engine], RunError | None]:
    """Return the function that explains a failed step."""
    steady = explainer(stepping.biasing)
    stages, track = stepping.stages, stepping.biasing.tracks[0]
    device = stages.device

    def explain(engine: Engine) -> RunError | None:
        if engine.read(track.broken) or (engine.read(track.failed) and abs(engine.read(track.inverse)) < BREAKDOWN):
            volts = abs(float(engine.read(track.state.bias))) * stages.thermal
            return RunError(
                f"the transient would begin beyond breakdown, at about {volts:.4g} V",
                remedy="begin below it, and let the voltage rise beyond it (photodiode.transient.voltage)",
            )
        if not engine.read(stepping.failed):
            return steady(engine)
        solved = bool(engine.read(stages.solved))
        return RunError(
            f"at {float(engine.read(stages.start)):.6g} s the step would be shorter than "
            f"{stepping.transient.lengths[2]:g} s: "
            + ("its error stays too large" if solved else "its equations were not solved"),
            where=place_words(device, int(engine.read(stages.place))),
            remedy="allow larger errors (photodiode.transient.tolerance), or check the doping and the mesh there"
            if solved
            else "limit the current by a resistance (photodiode.transient.load), or check the mesh there",
        )

    return explain


def _finished(stepping: Stepping) -> Callable[[Engine], str]:
    """Return the function that describes the end of a run."""

    def say(engine: Engine) -> str:
        return (
            f"the transient ends at {stepping.transient.until:g} s, after {int(engine.read(stepping.taken))} steps and "
            f"{int(engine.read(stepping.rejected))} rejected ones"
        )

    return say


def _parameters(device: Device, problem: Problem, what: Transient) -> dict[str, object]:
    first, largest, smallest = what.lengths
    circuit: dict[str, Any] = {name: getattr(what.drive, name) for name in what.drive.__dataclass_fields__}
    return {
        "layers": {layer.name: layer.material for layer in device.layers},
        "until": what.until, "voltage": list(what.voltage.values), "circuit": circuit,
        "ionisation": problem.ionisation, "statistics": device.statistics, "temperature": device.temperature,
        "emission": bool(device.emission), "tolerance": what.tolerance, "first": first, "largest": largest,
        "smallest": math.inf if smallest == 0.0 else smallest,
    }  # fmt: skip
