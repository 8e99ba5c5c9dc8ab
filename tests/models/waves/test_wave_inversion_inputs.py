"""Wrong arguments of inversions: errors that say what was found and what to give, and end all ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError
from minga.models.waves import Shot, band_limited, run_in_bands
from minga.models.waves.waves import Waves
from wave_inverse import SHAPE, START, inversion, shots, waves_of

NAN = float("nan")
RAGGED = [[1.0, 2.0], [3.0]]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("bounds", [5, "vp", [("vp", (1, 2))], *({"vp": ends} for ends in (
            1500, "ab", (1500,), (1500, 2000, 2500), (None, 2600), ("1500", "2600"), (2600, 1500), (NAN, 2600),
            (1500, NAN), (RAGGED, 2600), (np.ones((2, 3)), np.full((3, 2), 2.0)), np.float64(3.0), (1j, 2),
        ))]),
        ("mask", ["water", NAN, 1.0, RAGGED, np.full(SHAPE, NAN), np.full(SHAPE, -1.0), np.full(SHAPE, 2.0),
                  np.full(SHAPE, "a")]),
        ("wrt", ["vp", (), None, 5, (5,), ("vp", "vp"), {"vp"}]),
        ("shots", [None, 5, "ab", [5], shots()[0], [shots()[0], None]]),
        ("waves", [None, "prepare", 5]),
        ("misfit", [None, 5, ["l2"], "l1", {}]),
        ("memory", ["1 GB", NAN, -1, None]),
        ("threads", ["2", 0, 1.5, NAN, None, True]),
        ("precondition", [np.ones(3), ["illumination"], 1]),
        ("method", [np.ones(3), ["l-bfgs"], 1, None]),
        ("damping", ["0", NAN, True, None, -1.0]),
        ("floor", ["0", NAN, True, None, 0]),
        ("units", [None, 5, {"vp": 0.0}, {"vp": NAN}, {"vp": "1"}, {"epsilon": 1.0}]),
        ("inner", ["3", NAN, True, None, 1.5, 0]),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(CaseError, match="an inversion") as error:
            inversion(**{name: value})
        assert error.value.key == name
        assert error.value.remedy


def test_numbers_of_numpy_are_accepted() -> None:
    given = inversion(
        damping=np.float32(0.5), inner=np.int64(3), floor=np.float64(0.1), threads=np.int32(1), memory=np.float64(1e9),
        mask=np.ones(SHAPE, bool), bounds={"vp": np.array([1500, 2600])},
    )  # fmt: skip
    assert given.run({"vp": START}, np.int64(0)).iteration <= 0


@pytest.mark.parametrize(
    ("key", "options", "start"),
    [
        ("start", {}, None), ("start", {}, START), ("start", {}, []), ("start", {}, {}), ("start", {}, {"vp": 1900.0}),
        ("start", {}, {"vp": "fast"}), ("start", {}, {"vp": START * NAN}), ("start", {}, {"vp": START.astype(complex)}),
        ("start", {}, {"vp": RAGGED}), ("start", {"wrt": ("vp", "rho")}, {"vp": START, "rho": START[1:]}),
        ("mask", {"mask": np.ones((3, 3))}, {"vp": START}),
        ("bounds", {"bounds": {"vp": (np.ones(3), 2600)}}, {"vp": START}),
    ],
)  # fmt: skip
def test_media_that_do_not_fit_are_refused(key: str, options: dict[str, Any], start: Any) -> None:
    given = inversion(**options)
    runs = (lambda: given.run(start, 1), lambda: run_in_bands(given, start, [(30.0, 1)]), lambda: given.gradient(start))
    for run in runs:
        with pytest.raises(CaseError) as error:
            run()
        assert error.value.key == key
        assert error.value.remedy


def test_media_of_another_shape_than_the_model_are_refused() -> None:
    def waves(values: Any, shot: Shot) -> Waves:
        return waves_of({"vp": START}, shot)

    with pytest.raises(CaseError, match=r"has shape \(3, 4\), and the model of shots\[0\] has \(14, 16\)"):
        inversion(waves=waves).run({"vp": np.full((3, 4), 2000.0)}, 1)


def test_wrong_arguments_of_runs_are_refused() -> None:
    given = inversion()
    for iterations in ("3", NAN, 1.5, -1, None, True):
        with pytest.raises(CaseError, match="iterations"):
            given.run({"vp": START}, iterations)
    with pytest.raises(CaseError, match="callback"):
        given.run({"vp": START}, 1, callback=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "stages", [[5.0], [("a", 2)], [(5.0, "2")], [(5.0, 1.5)], [(NAN, 1)], [(5.0, 1, 2)], 5, "ab", []]
)
def test_wrong_stages_are_refused(stages: Any) -> None:
    with pytest.raises(CaseError, match="stages"):
        run_in_bands(inversion(), {"vp": START}, stages)


def test_wrong_arguments_of_bands_are_refused() -> None:
    shot = shots()[0]
    for dt in (0, NAN, -1e-3, "1e-3", None):
        with pytest.raises(CaseError, match="dt") as error:
            band_limited(shot, dt, 40.0)
        assert error.value.remedy
    with pytest.raises(CaseError, match="shot"):
        band_limited(5, 1e-3, 40.0)  # type: ignore[arg-type]
    for band in ((40.0, "1"), ("40", 0.0), (None, 0.0), (np.inf, 0.0), (40.0, NAN), (40.0, -1.0)):
        with pytest.raises(CaseError, match="band"):
            band_limited(shot, 1e-3, *band)
    with pytest.raises(CaseError, match="band"):
        run_in_bands(inversion(), {"vp": START}, [(40.0, 1)], lowest="1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "result",
    [None, 1.0, (1.0,), (1.0, None), (None, np.zeros((80, 7))), (1.0, np.zeros((3, 3))), (NAN, np.zeros((80, 7))),
     (1.0, np.full((80, 7), NAN)), ("a", np.zeros((80, 7))), (np.ones(2), np.zeros((80, 7))), (1.0, RAGGED)],
)  # fmt: skip
def test_functions_that_return_no_misfit_are_refused(result: Any) -> None:
    with pytest.raises(CaseError, match="function of the misfit") as error:
        inversion(misfit=lambda found, data: result).gradient({"vp": START})
    assert error.value.key == "misfit"


def test_functions_that_return_no_waves_are_refused() -> None:
    given = inversion(waves=lambda values, shot: None)
    for run in (lambda: given.run({"vp": START}, 1), lambda: run_in_bands(given, {"vp": START}, [(60.0, 1)])):
        with pytest.raises(CaseError, match="NoneType") as error:
            run()
        assert error.value.key == "waves"


# Errors of one rank ------------------------------------------------------------------------------------------------
def ends(call: Any) -> list[str]:
    """Names and texts of the errors that end each of two ranks."""

    def body(comm: Any) -> str:
        try:
            call(comm)
        except Exception as error:
            return f"{type(error).__name__}: {error.args[0]}"
        return "none"

    shots()  # once, before the ranks, which are threads
    return mg.run_virtual(2, body)


@pytest.mark.parametrize("method", ["l-bfgs", "gauss-newton"])
def test_an_error_of_any_kind_on_one_rank_ends_all(method: str) -> None:
    second = shots()[1]

    def broken(values: Any, shot: Shot) -> Waves:
        if shot.receivers is second.receivers and shot.sources[0].position == second.sources[0].position:
            raise ZeroDivisionError("no such shot")
        return waves_of(values, shot)

    given = inversion(waves=broken, method=method)
    expected = ["RunError: shots[1] ended with ZeroDivisionError: no such shot", "ZeroDivisionError: no such shot"]
    assert ends(lambda comm: given.run({"vp": START}, 1, comm=comm)) == expected
    assert ends(lambda comm: given.gradient({"vp": START}, comm)) == expected
    assert ends(lambda comm: run_in_bands(given, {"vp": START}, [(60.0, 1)], comm=comm)) == expected


def test_an_error_of_the_search_ends_all(tmp_path: Any) -> None:
    file = tmp_path / "vp.npz"
    file.write_text("no archive")
    first, second = ends(lambda comm: inversion().run({"vp": START}, 1, file=file, comm=comm))
    assert first == second
    assert first.startswith("CaseError: cannot read")

    def callback(_: Any) -> None:
        raise KeyError("gone")

    found = ends(lambda comm: inversion().run({"vp": START}, 1, callback=callback, comm=comm))
    assert found == ["KeyError: gone", "RunError: rank 0 ended with KeyError: 'gone'"]


def test_wrong_arguments_end_all_ranks() -> None:
    for start, iterations in (({"vp": START * NAN}, 1), ({"vp": START}, -1)):
        first, second = ends(lambda comm: inversion().run(start, iterations, comm=comm))
        assert first == second
        assert first.startswith("CaseError")
