"""Migration: what it refuses, and the same image on any ranks. docs/wave-equations.md images a reflector."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.case.examples import example
from minga.case.load import python_case
from minga.case.python_file import run_file
from minga.case.settings import GridSettings
from minga.errors import CaseError
from minga.models.waves import Medium, PointSource, Random, Receivers, Ricker, Sponge, migrate, prepare
from model_runs import run_model

SHAPE, STEPS = (12, 12, 12), 24
SHOT = [PointSource((30.0, 60.0, 61.0), Ricker(40.0, delay=0.01))]
SPREAD = Receivers([(20.0, 35.0, 80.0), (20.0, 70.0, 42.0)])
DATA = np.random.default_rng(5).standard_normal((STEPS + 1, 2))
ROCK = Medium(2000.0)


def image(ranks: int, sources: list[PointSource] = SHOT) -> np.ndarray:
    waves = prepare(SHAPE, 10.0, dt=1e-3, medium=ROCK, order=4, boundary=Random(4))
    found = mg.run_virtual(ranks, lambda comm: migrate(waves, sources, SPREAD, DATA, comm=comm))[0]  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.slow
def test_the_same_image_on_any_ranks() -> None:
    alone = image(1)
    assert alone.shape == SHAPE
    assert (image(3) == alone).all()
    assert abs(alone).max() > 0


def test_without_a_source_there_is_no_image() -> None:
    assert not image(1, []).any()


def test_boundaries_that_take_energy_are_refused() -> None:
    waves = prepare(SHAPE, 10.0, dt=1e-3, medium=ROCK, boundary=Sponge(4))
    with pytest.raises(CaseError, match="runs backwards in time"):
        migrate(waves, SHOT, SPREAD, DATA)


@pytest.mark.parametrize("data", [DATA[:, :1], DATA[0], DATA[:1]])
def test_data_that_do_not_fit_are_refused(data: np.ndarray) -> None:
    waves = prepare(SHAPE, 10.0, dt=1e-3, medium=ROCK, boundary=Random(4))
    with pytest.raises(CaseError, match="the data have shape"):
        migrate(waves, SHOT, SPREAD, data)


@pytest.mark.slow
def test_the_example_images_a_fold_as_migrate_does() -> None:
    """One model that goes there and back, on ranks of its own: the same bits as two Programs one after the other."""
    path, shape, steps = example("rtm"), (24, 6, 20), 170
    assert path is not None
    model = python_case(path).model(GridSettings(shape=shape), {"steps": steps, "frequency": 25.0})
    there_and_back = 2 * steps + 1
    assert model.window is not None
    found = run_model(model, there_and_back, ranks=2).fields["image"][model.window.slices((0, 0, 0))]
    names, wavelet = run_file(path, "model"), Ricker(25.0)
    waves = prepare(shape, names["SPACING"], dt=names["DT"], medium=Medium(names["ABOVE"]), boundary=Random(12))
    records = names["survey"](shape, steps, wavelet)
    records[-1] = 0.0  # the example begins one step before the last sample
    assert (migrate(waves, [names["source"](wavelet)], names["receivers"](shape), records) == found).all()
    assert abs(9 + abs(found[9:, 3, 10]).argmax() - names["fold"](shape)[10]) <= 1.5
    assert names["run"]["steps"] == 2 * names["STEPS"] + 1
