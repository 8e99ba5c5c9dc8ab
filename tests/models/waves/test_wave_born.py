"""Born modelling: the transpose of gradients, the limit of differences, on any ranks; wrong inputs are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import lsmr

import minga as mg
from minga.errors import CaseError
from minga.models.waves import Random, Shot, linearised_shots, prepare, shot_born, shot_traces
from wave_physics import ENTRIES, PHYSICS, SHAPE, SHOT, prepared

DATA = Shot(SHOT.sources, SHOT.receivers, np.zeros((16, 3)))


def directions(names: tuple[str, ...], seed: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(SHAPE) * (100.0 if name == "vp" else 0.02) for name in names}


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("physics", PHYSICS)
def test_born_modelling_and_gradients_are_transposes(physics: str, dtype: str) -> None:
    wrt = PHYSICS[physics][0]
    jacobian = linearised_shots([prepared(physics, ENTRIES, dtype)], [DATA], wrt)
    x = np.concatenate([each.ravel() for each in directions(wrt).values()])
    y = np.random.default_rng(4).standard_normal(jacobian.shape[0])
    there, back = jacobian.matvec(x), jacobian.rmatvec(y)
    size = np.linalg.norm(there) * np.linalg.norm(y)
    assert abs(there @ y - x @ back) < (1e-12 if dtype == "f8" else 1e-5) * size


@pytest.mark.few(1)
@pytest.mark.parametrize("physics", PHYSICS)
def test_born_modelling_is_the_limit_of_differences(physics: str) -> None:
    """The remainder of a Taylor polynomial of degree 1 is of second order."""
    wrt = PHYSICS[physics][0]
    change = directions(wrt)
    born = shot_born(prepared(physics, ENTRIES), SHOT, change, 16)
    before = shot_traces(prepared(physics, ENTRIES), SHOT, 16)

    def rest(h: float) -> float:
        changed = ENTRIES | {name: ENTRIES[name] + h * each for name, each in change.items()}
        return float(np.linalg.norm(shot_traces(prepared(physics, changed), SHOT, 16) - before - h * born))

    sizes = [0.1 / 2**k for k in range(5)]
    assert np.polyfit(np.log(sizes), np.log([rest(h) for h in sizes]), 1)[0] == pytest.approx(2.0, abs=0.02)


@pytest.mark.few(1)
@pytest.mark.parametrize("ranks", [3, 2])
def test_bits_do_not_depend_on_ranks(ranks: int) -> None:
    change = directions(PHYSICS["tilted"][0])

    def body(comm: Any) -> Any:
        return shot_born(prepared("tilted", ENTRIES), SHOT, change, 8, comm=comm)

    alone = body(None)
    assert np.linalg.norm(alone) > 0
    assert all(each.tobytes() == alone.tobytes() for each in mg.run_virtual(ranks, body))


@pytest.mark.slow
def test_least_squares_explain_born_data() -> None:
    """LSMR explains the data of a small change."""
    jacobian = linearised_shots([prepared("free", ENTRIES)], [DATA])
    data = jacobian.matvec(directions(("vp",))["vp"].ravel())
    rest = [np.linalg.norm(data)]
    for rounds in (2, 5, 10):
        found = lsmr(jacobian, data, maxiter=rounds, atol=0.0, btol=0.0)[0]
        rest.append(float(np.linalg.norm(jacobian.matvec(found) - data)))
    assert rest[0] > rest[1] > rest[2] > rest[3]
    assert rest[3] < 0.1 * rest[0]


def test_invalid_changes_are_refused() -> None:
    waves = prepared("free", ENTRIES)
    with pytest.raises(CaseError, match="the change of vp has shape"):
        shot_born(waves, SHOT, {"vp": np.zeros((3, 3))}, 4)
    with pytest.raises(CaseError, match="epsilon is one number, or does not enter"):
        shot_born(waves, SHOT, {"epsilon": np.zeros(SHAPE)}, 4)
    with pytest.raises(CaseError, match="there is no quantity 'vs'"):
        shot_born(waves, SHOT, {"vs": np.zeros(SHAPE)}, 4)
    with pytest.raises(CaseError, match="1 waves for 2 shots"):
        linearised_shots([waves], [DATA, DATA])
    scattering = prepare(SHAPE, 10.0, dt=6e-4, order=4, medium=waves.sampler.medium, boundary=Random(4))
    with pytest.raises(CaseError, match="random layers"):
        shot_born(scattering, SHOT, {"vp": np.zeros(SHAPE)}, 4)
