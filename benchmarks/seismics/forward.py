"""Shots of several physics beside Devito's examples, in turns, each with one thread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

import minga as mg
from benchmarks.seismics.peer import Ask, peer
from minga.models.waves import Medium, PointSource, Receivers, Ricker, Shot, Sponge, prepare, shot_traces
from minga.models.waves.elastic import ElasticMedium, Explosion, elastic, prepare_elastic

__all__ = ["measure_forward"]

_COMMON: Final = {"layer": 20, "receivers": 100, "frequency": 8.0, "top": 1500.0}
_TILTED: Final = {"epsilon": 0.2, "delta": 0.1, "theta": 0.3}
SHOTS: Final[dict[str, dict[str, Any]]] = {
    "acoustic, 3-D": {
        "physics": "acoustic", "cells": (100, 100, 100), "spacing": 20.0, "order": 8, "dt": 2e-3, "steps": 300,
        "gradient": 10.0,
    },
    "elastic, 2-D": {
        "physics": "elastic", "cells": (240, 400), "spacing": 10.0, "order": 8, "dt": 1e-3, "steps": 800,
        "gradient": 6.0,
    },
    "elastic, 2-D, receivers as observables": {
        "physics": "elastic", "cells": (240, 400), "spacing": 10.0, "order": 8, "dt": 1e-3, "steps": 800,
        "gradient": 6.0, "observed": True,
    },
    "tilted, 2-D": {
        "physics": "tilted", "cells": (240, 400), "spacing": 10.0, "order": 8, "dt": 1e-3, "steps": 800,
        "gradient": 6.0,
    },
}  # fmt: skip
ROUNDS: Final = 5


def measure_forward(quick: bool) -> list[dict[str, Any]]:
    """Return the median seconds of each shot over some rounds.

    Each has a process of Devito's own: after another shot in the same one, its elastic shot takes half as long again.
    """
    found = []
    for name, shot in SHOTS.items():
        with peer("devito_forward.py") as devito:
            found.append(_of(name, dict(shot) | _COMMON | _TILTED, quick, devito))
    return found


def _of(name: str, shot: dict[str, Any], quick: bool, devito: Ask | None) -> dict[str, Any]:
    if quick:
        shot |= {"cells": tuple(n // 5 for n in shot["cells"]), "steps": 20, "receivers": 5}
    own = _OWN[shot["physics"]](shot)
    own()
    times: dict[str, list[float]] = {"minga": []}
    version = None
    for _ in range(1 if quick else ROUNDS):
        began = time.process_time()
        own()
        times["minga"].append(time.process_time() - began)
        if devito is not None:
            answer = devito(shot)
            version = answer["version"]
            times.setdefault("devito", []).append(answer["seconds"])
    middle = {program: statistics.median(values) for program, values in times.items()}
    result = {"shot": name, "numbers": shot, "seconds": middle, "all": times, "devito": version}
    return result | ({"ratio": middle["devito"] / middle["minga"]} if "devito" in middle else {})


def _depths(shot: Mapping[str, Any]) -> np.ndarray:
    """Return velocities that grow with depth."""
    cells = shot["cells"]
    rows = shot["top"] + shot["gradient"] * np.arange(cells[0])
    return np.broadcast_to(rows.reshape(-1, *(1,) * (len(cells) - 1)), cells).astype(np.float32)


def _places(shot: Mapping[str, Any]) -> tuple[tuple[float, ...], list[tuple[float, ...]]]:
    """Return the position of the source, and those of the receivers."""
    h, width, further = shot["spacing"], (shot["cells"][-1] - 1) * shot["spacing"], len(shot["cells"]) - 2
    middle = (width / 2,) * further
    receivers = [(h, *middle, float(x)) for x in np.linspace(0, width, shot["receivers"])]
    return (h, *middle, width / 2), receivers


def _acoustic(shot: Mapping[str, Any]) -> Callable[[], object]:
    source, receivers = _places(shot)
    entries = {name: np.full(shot["cells"], shot[name], np.float32) for name in _TILTED if shot["physics"] == "tilted"}
    waves = prepare(
        shot["cells"], shot["spacing"], dt=shot["dt"], medium=Medium(_depths(shot), **entries), order=shot["order"],
        boundary=Sponge(shot["layer"]),
    )  # fmt: skip
    wavelet = Ricker(shot["frequency"], delay=1.0 / shot["frequency"])
    made = Shot([PointSource(source, wavelet, interpolation="linear")], Receivers(receivers, interpolation="linear"))
    return lambda: shot_traces(waves, made, shot["steps"] + 1)


def _elastic(shot: Mapping[str, Any]) -> Callable[[], object]:
    position, places = _places(shot)
    vp = _depths(shot)
    entries: dict[str, Any] = {
        "dt": shot["dt"], "medium": ElasticMedium(vp, 0.5 * vp, np.full_like(vp, 2000.0)), "order": shot["order"],
        "boundary": Sponge(shot["layer"]),
    }  # fmt: skip
    sources = [Explosion(position, Ricker(shot["frequency"], delay=1.0 / shot["frequency"]))]
    receivers = Receivers(places, interpolation="linear")
    if shot.get("observed"):
        model = elastic(shot["cells"], shot["spacing"], sources=sources, receivers=receivers, record=("p",), **entries)
        return lambda: mg.run(model, shot["steps"], observe=1, threads=1)
    waves, made = prepare_elastic(shot["cells"], shot["spacing"], **entries), Shot(sources, receivers)
    return lambda: shot_traces(waves, made, shot["steps"] + 1)


_OWN: Final = {"acoustic": _acoustic, "tilted": _acoustic, "elastic": _elastic}
