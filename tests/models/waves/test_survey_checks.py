"""Wrong parameters of surveys, and samples and cells that do not hold the waves of their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minga.errors import CaseError
from minga.models.waves import (
    Frame,
    Medium,
    PointSource,
    Receivers,
    Ricker,
    Shot,
    Sponge,
    Survey,
    points_between,
    shots_of_segy,
    shots_of_sps,
    streamer,
)
from minga.models.waves.elastic import ElasticMedium, Explosion
from minga.models.waves.preflight import sampled_notes, warnings_of

NEAR = Receivers([(30.0, 50.0)])
GOOD = Shot([PointSource((20.0, 100.0), Ricker(20.0))], NEAR)


def refused(folder: Path, *shots: Any, **options: Any) -> str:
    """Return why a survey is refused; nothing is written."""
    given: dict[str, Any] = {"shots": shots or (GOOD,), "boundary": Sponge(4), "dt": 1e-3, "medium": Medium(2000.0)}
    samples = options.pop("samples", 11)
    with pytest.raises(CaseError) as caught:
        Survey(shape=(16, 30), spacing=10.0, **(given | options)).record(folder / "a.sgy", samples)
    assert not list(folder.iterdir())
    return str(caught.value)


def test_shots_are_lists_of_shots_with_sources(tmp_path: Path) -> None:
    assert "shot 2 has no sources" in refused(tmp_path, GOOD, Shot([], NEAR))
    assert "no list of Shot" in refused(tmp_path, shots=3)
    assert "no list of Shot" in refused(tmp_path, GOOD, 3)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"records": [3]}, "1 records for 2 shots"),
        ({"records": [3, 3]}, "several shots have the number 3"),
        ({"records": [3, 0]}, "0 is no number of a shot"),
        ({"records": [3, "4"]}, "'4' is no number of a shot"),
        ({"points": [1.5, float("nan")]}, "nan is no number of a source point"),
        ({"points": [1.0, 2.0, 3.0]}, "3 points for 2 shots"),
        ({"first": -3}, "first is -3"),
        ({"first": 0.5}, "first is 0.5"),
        ({"delay": 5e-4}, "whole milliseconds"),
        ({"delay": float("inf")}, "whole milliseconds"),
        ({"aperture": "x"}, "the aperture is 'x'"),
        ({"aperture": float("nan")}, "the aperture is nan"),
        ({"samples": 3.5}, "3.5 samples"),
        ({"dt": 1.2345678e-3}, "give dt=0.001234"),
    ],
)
def test_numbers_that_files_cannot_hold_are_refused(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    """Each was written with other numbers, or ended in an error of Python."""
    assert text in refused(tmp_path, GOOD, GOOD, **options)


def test_samples_that_alias_the_wavelet_are_refused(tmp_path: Path) -> None:
    """With 26 ms from one sample to the next, a wavelet of 20 Hz looks like one of 18 Hz."""
    rarely = Shot(GOOD.sources, Receivers([(30.0, 50.0)], every=26))
    text = refused(tmp_path, rarely)
    assert "shot 1: samples every 26 ms hold frequencies up to 19.23 Hz, and the wavelet's peak is at 20 Hz" in text
    assert "sample every 8.33 ms or more often" in text
    assert [*sampled_notes(GOOD.sources, 8.33e-3)] == []
    ((label, part),) = sampled_notes(GOOD.sources, 8.34e-3)
    assert (label, part) == (
        "aliasing",
        "samples hold frequencies up to 59.95 Hz; a wavelet has a part above, up to 60 Hz",
    )
    assert warnings_of([(label, part)]) == ()
    (warning,) = warnings_of([*sampled_notes(GOOD.sources, 26e-3)])
    assert warning.startswith("receivers record other waves: samples every 26 ms")


def test_cells_that_are_too_coarse_are_refused(tmp_path: Path) -> None:
    """The slowest waves count: S waves of solids."""
    high = Shot([PointSource((20.0, 100.0), Ricker(101.0))], NEAR)
    text = refused(tmp_path, GOOD, high)
    assert "shots[1]" in text
    assert "2 points per wavelength are fewer than 2" in text
    slow = ElasticMedium(2000.0, 300.0, 2000.0)
    blow = Shot([Explosion((20.0, 100.0), Ricker(20.0))], NEAR)
    assert "1.5 points per wavelength" in refused(tmp_path, blow, medium=slow)


def test_lines_and_places_that_are_none_are_refused() -> None:
    wrong: list[tuple[str, Any]] = [
        ("the ends of a line", lambda: points_between((1.0,), (1.0, 2.0), 3)),
        ("the ends of a line", lambda: points_between((1.0, 2.0), (1.0, float("nan")), 3)),
        ("0 points", lambda: points_between((1.0, 1.0), (1.0, 2.0), 0)),
        ("a streamer at depth 'a'", lambda: streamer([(1.0, 2.0)], "a", 1.0, 1.0, 3)),  # type: ignore[arg-type]
        ("-3 receivers", lambda: streamer([(1.0, 2.0)], 5.0, 1.0, 1.0, -3)),
        ("the place of a model is 'x'", lambda: Frame("x")),  # type: ignore[arg-type]
        ("the bearing 'n'", lambda: Frame((0.0, 0.0), "n")),  # type: ignore[arg-type]
        ("the place of a model", lambda: Frame((0.0, float("nan")))),
        ("the source is Ricker", lambda: shots_of_segy("a.sgy", Ricker(15.0), 1e-3)),  # type: ignore[arg-type]
        ("the source is None", lambda: shots_of_sps("a", "b", "c", None)),  # type: ignore[arg-type]
        ("dt is 0", lambda: shots_of_segy("a.sgy", lambda place: PointSource(place), 0)),
    ]
    for text, function in wrong:
        with pytest.raises(CaseError, match=text) as caught:
            function()
        assert caught.value.remedy
