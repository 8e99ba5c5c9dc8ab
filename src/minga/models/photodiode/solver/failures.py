"""Why a run could not go on, in words: the curve, the voltage, the layer, and what to do."""

from __future__ import annotations

from collections.abc import Callable

from minga.engine.engine import Engine
from minga.errors import RunError
from minga.models.photodiode.solver.biasing import Biasing, Track
from minga.models.photodiode.solver.gummel import Gummel
from minga.models.photodiode.solver.linear import unsolved_words
from minga.models.photodiode.structure.device import Device

__all__ = ["breakdown_words", "explainer", "place_words"]


def place_words(device: Device, node: int) -> str:
    """Where a node lies (its number is row-major): layer, depth and node."""
    row = node // (device.volumes.size // device.grid.shape[0])
    depth = 1e4 * float(device.nodes[0][row])
    layer = device.layers[int(device.layer.flat[node])].name
    return f"layer {layer!r}, {depth:.4g} um from the anode (node {row})"


def explainer(biasing: Biasing) -> Callable[[Engine], RunError | None]:
    """What a Model calls after a step without success."""
    device, thermal = biasing.coefficients.device, biasing.thermal

    def explain(engine: Engine) -> RunError | None:
        for track in biasing.tracks:
            if not engine.read(track.failed):
                continue
            newton = track.newton
            volts = float(engine.read(track.state.bias)) * thermal
            change, residual = float(engine.read(newton.change)), float(engine.read(newton.residual))
            return RunError(
                f"the {track.name} curve could not be followed beyond {volts:.6g} V: with steps of "
                f"{1e3 * biasing.problem.smallest_step:g} mV the last correction is still {change:.3g} kT/q, the "
                f"residual {residual:.3g}",
                where=place_words(device, int(engine.read(track.place))),
                remedy=_remedy(engine, track) + unsolved_words(engine, track.equations.lines),
            )
        return None

    return explain


def _remedy(engine: Engine, track: Track) -> str:
    """What to do, as the method has it."""
    if not isinstance(track.newton, Gummel):
        return (
            "look at the doping and the spacing of nodes there: a jump of the doping wants nodes close together, a "
            "layer several of them; or allow more iterations (photodiode.limit)"
        )
    inverse = float(engine.read(track.inverse)) if track.ionisation else 1.0
    multiplied = f" (here pairs multiply it by {1.0 / inverse:.3g})" if 0.0 < inverse < 0.95 else ""
    return (
        'write scheme = "newton": Gummel\'s iteration takes very many rounds, or does not settle, where carriers and '
        f"potential depend on each other strongly, as in light, at high currents and near breakdown{multiplied}"
    )


def breakdown_words(biasing: Biasing) -> Callable[[Engine], str]:
    """What is said where a run ends at breakdown."""
    first = biasing.tracks[0]

    def say(engine: Engine) -> str:
        return (
            f"breakdown at {abs(float(engine.read(first.breakdown))):.4g} V: there the current would grow without bound"
        )

    return say
