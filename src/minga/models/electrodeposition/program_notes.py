"""Notes and warnings about the program of a cell, shown before it starts."""

from __future__ import annotations

import math
from typing import Final

from minga.models.electrodeposition.note_units import Notes, prefixed
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.protocols.segments import Repeat, duration_of, segments_of

__all__ = ["notes_of_program", "warnings_of_impedances"]

LINEAR: Final = 0.5
"""Amplitude of a voltage, in RT/nF, up to which the response counts as linear."""
WIDEST: Final = 0.25
"""Width of the first cell, in diffusion lengths, up to which it gives Warburg's impedance within about 1 %."""
LARGEST_LAG: Final = 0.01
"""Phase, rad, up to which the charging of the first cell counts as negligible."""


def warnings_of_impedances(problem: Problem, unit: dict[str, str], conductivity: float) -> Notes:
    """Return what impedances of the program do not show as they should, in a bath of this conductivity (S/m)."""
    yield from _amplitudes(problem, unit)
    yield from _too_wide(problem, unit)
    yield from _lagging(problem, unit, conductivity)


def notes_of_program(problem: Problem, unit: dict[str, str]) -> Notes:
    """Return the size of the program, and what observations do not show of it."""
    if not problem.protocol:
        return
    count, duration = sum(1 for _ in segments_of(problem.protocol)), duration_of(problem.protocol)
    lasts = "as long as its limits take" if math.isinf(duration) else f"{duration:g}{unit['time']} at most"
    early = problem.steps.end < duration < math.inf
    cut = f"; the run ends before, at {problem.steps.end:g}{unit['time']} (time.end)" if early else ""
    yield "program", f"{count} segments, {lasts}{cut}"
    yield from _charging(problem, unit)
    yield from _unseen(problem, unit)


def _amplitudes(problem: Problem, unit: dict[str, str]) -> Notes:
    """Yield a warning where the amplitude of an impedance is so large that the response is not linear."""
    swings = [s.amplitude for s in segments_of(problem.protocol) if s.measured and s.control == "voltage"]
    charge = next((abs(s.charge) for s in problem.species if s.name == problem.metal), 0)
    if not swings or not charge:
        return
    scale, largest = 1.0 / (charge * problem.beta), max(map(abs, swings))
    if largest > LINEAR * scale:
        text = f"an impedance with an amplitude of {prefixed(largest, unit['potential'])} is not that of small signals"
        yield "warning", f"{text}, which are well below RT/nF = {prefixed(scale, unit['potential'])}"


def _too_wide(problem: Problem, unit: dict[str, str]) -> Notes:
    """Yield a warning where cells at the cathode are too wide for the diffusion at the highest frequency."""
    highest = _highest(problem)
    diffusivity = next((s.diffusivity for s in problem.species if s.name == problem.metal), 0.0)
    if not highest or not diffusivity:
        return
    length, width = math.sqrt(diffusivity / (2.0 * math.pi * highest)), float(problem.grid.widths("y")[0])
    if width > WIDEST * length:
        first = f"the first cell is {prefixed(width, unit['length'])} wide"
        text = f"{first}, and ions diffuse {prefixed(length, unit['length'])} at the highest frequency of the impedance"
        yield "warning", f"{text}: diffusion is right to 1 % with cells of a quarter of this length"


def _lagging(problem: Problem, unit: dict[str, str], conductivity: float) -> Notes:
    """Yield a warning where the first cell takes so much charge through the bath that the ions' current lags behind.

    An impedance Z of the reactions behind a resistance R then becomes R + Z (1 + i w R C).
    """
    highest = _highest(problem)
    if not highest or not conductivity or problem.cathode.capacity:
        return
    width, faces = float(problem.grid.widths("y")[0]), problem.grid.faces("y")
    away = float(faces[-1] - faces[0]) if problem.reference is None else problem.reference
    capacity = 2.0 * problem.constants.permittivity / width
    lag = 2.0 * math.pi * highest * capacity * away / conductivity
    if lag > LARGEST_LAG:
        charges = f"charges like {capacity:.3g}{unit['capacity']}"
        first = f"the first cell is {prefixed(width, unit['length'])} wide and {charges}"
        behind = f"through the bath, so that the current of the ions lags by {lag:.2g} rad at the highest frequency"
        cure = (
            "wider first cells, a reference electrode closer to the cathode or the capacity of a double layer avoid it"
        )
        yield "warning", f"{first} {behind}; {cure}"


def _highest(problem: Problem) -> float:
    """Return the highest frequency of an impedance, 0 without any."""
    return max((s.frequency for s in segments_of(problem.protocol) if s.measured), default=0.0)


def _charging(problem: Problem, unit: dict[str, str]) -> Notes:
    """Yield the current that charges the first cell, which counts as a plate capacitor, in the fastest voltage ramp."""
    rate = max((abs(s.slope) for s in segments_of(problem.protocol) if s.control == "voltage"), default=0.0)
    if rate:
        half = 0.5 * float(problem.grid.widths("y")[0])
        current = problem.constants.permittivity / half * rate
        text = f"{current:.3g}{unit['current']} in the fastest ramp go into the layer of the first cell, not to ions"
        yield "charging", f"{text}; wider first cells have less"


def _unseen(problem: Problem, unit: dict[str, str]) -> Notes:
    """Yield a warning where observations are too rare to show the repeated segments of the program."""
    repeated = (s for part in problem.protocol if isinstance(part, Repeat) for s in segments_of(part.of))
    shortest = min((s.duration for s in repeated if not s.frequency), default=math.inf)
    if shortest < problem.steps.every:
        time = prefixed(shortest, unit["time"])
        seen = f"observations every {prefixed(problem.steps.every, unit['time'])} do not show segments of {time}"
        yield "warning", f"{seen}: currents and voltages are those of one instant each; charges miss nothing"
