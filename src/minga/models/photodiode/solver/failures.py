"""Explanations of failed runs: the curve, the voltage, the layer, and a remedy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from minga.engine.engine import Engine
from minga.errors import RunError
from minga.models.photodiode.solver.biasing import Biasing, Track
from minga.models.photodiode.solver.gummel import Gummel
from minga.models.photodiode.solver.linear import unsolved_words
from minga.models.photodiode.solver.thresholds import LONGEST_SPACE
from minga.models.photodiode.structure.device import Device

__all__ = ["breakdown_words", "explainer", "floating_layers", "place_words"]

NEAR_BREAKDOWN: Final = 20.0
"""Multiplication of the current from which on a failure is put down to breakdown."""


def place_words(device: Device, node: int) -> str:
    """Describe the position of a node, given by its row-major number: layer, depth and node."""
    row = node // (device.volumes.size // device.grid.shape[0])
    depth = 1e4 * float(device.nodes[0][row])
    layer = device.layers[int(device.layer.flat[node])].name
    return f"layer {layer!r}, {depth:.4g} um from the anode (node {row})"


def explainer(biasing: Biasing) -> Callable[[Engine], RunError | None]:
    """Return the function that a Model calls to explain a failed step."""
    device, thermal = biasing.coefficients.device, biasing.thermal

    def explain(engine: Engine) -> RunError | None:
        for track in biasing.tracks:
            if not engine.read(track.failed):
                continue
            newton = track.newton
            volts = float(engine.read(track.state.bias)) * thermal
            history = track.equations.history
            if history is not None and float(engine.read(history.longest)) >= LONGEST_SPACE:
                return RunError(
                    f"the {track.name} curve could not be followed beyond {volts:.6g} V: the dead space is "
                    f"{LONGEST_SPACE:g} times the mean free path of ionisation, or more",
                    where=place_words(device, int(engine.read(history.place))),
                    remedy="give smaller threshold energies, or coefficients beyond the dead space "
                    '(photodiode.dead_space.coefficients = "enabled")',
                )
            change, residual = float(engine.read(newton.change)), float(engine.read(newton.residual))
            return RunError(
                f"the {track.name} curve could not be followed beyond {volts:.6g} V: even with steps of "
                f"{1e3 * biasing.problem.smallest_step:g} mV the last correction is still {change:.3g} kT/q, the "
                f"residual {residual:.3g}",
                where=place_words(device, int(engine.read(track.place))),
                remedy=(_about_floating(device) or _remedy(engine, track, bool(biasing.problem.current)))
                + unsolved_words(engine, track.equations.lines),
            )
        return None

    return explain


def floating_layers(device: Device) -> list[str]:
    """Return the names of doped layers that junctions part from both contacts, on one axis."""
    if device.grid.ndim > 1:
        return []
    signs = [1 if device.doping[(layer.first + layer.last) // 2] > 0.0 else -1 for layer in device.layers]
    turns = [k for k in range(1, len(signs)) if signs[k] != signs[k - 1]]
    return [layer.name for layer in device.layers[turns[0] : turns[-1]]] if len(turns) > 2 else []


def _about_floating(device: Device) -> str:
    """Return the remedy for a device with floating layers; "" for others."""
    floating = floating_layers(device)
    if not floating:
        return ""
    several = len(floating) > 1
    return (
        f"the {'layers' if several else 'layer'} {', '.join(map(repr, floating))} between junctions "
        f"{'float' if several else 'floats'}: the potential there depends on currents far below those of the rest, and "
        "the curve of such a device may turn back, as that of a thyristor; let a transient go there from 0 V without "
        'light (mode = "transient"), or leave out the junctions that the device does not need'
    )


def _remedy(engine: Engine, track: Track, imposed: bool) -> str:
    """Return the remedy appropriate to the method; `imposed`: currents are given, not voltages."""
    inverse = float(engine.read(track.inverse)) if track.ionisation else 1.0
    gain = 1.0 / inverse if inverse > 0.0 else math.inf
    by = f"by {gain:.3g}" if gain < math.inf else "without limit"
    if not isinstance(track.newton, Gummel):
        if gain > NEAR_BREAKDOWN and imposed:
            return (
                f"ionisation multiplies the current {by} here, which grows with the voltage faster than "
                "Newton's method can follow: impose smaller currents, or let a transient behind a resistance reach "
                'this one (mode = "transient", photodiode.transient.load)'
            )
        if gain > NEAR_BREAKDOWN:
            return (
                f"ionisation multiplies the current {by} here, and a little more voltage makes it grow "
                "without bound: end the range of voltages here, or impose currents (photodiode.current)"
            )
        return (
            "check the doping and the mesh there: a doping step needs closely spaced nodes, and a layer "
            "several of them; or allow more iterations (photodiode.limit)"
        )
    multiplied = f" (here ionisation multiplies the current by {gain:.3g})" if 1.05 < gain < math.inf else ""
    return (
        'write scheme = "newton": Gummel\'s iteration converges very slowly or not at all where carriers and '
        f"potential are strongly coupled, as under light, at high currents and near breakdown{multiplied}"
    )


def breakdown_words(biasing: Biasing) -> Callable[[Engine], str]:
    """Return the function that describes the end of a run at breakdown."""
    first = biasing.tracks[0]

    def say(engine: Engine) -> str:
        return (
            f"breakdown at {abs(float(engine.read(first.breakdown))):.4g} V: there the current would grow without bound"
        )

    return say
