"""The benchmark of photodiodes runs, and compares equal currents. No speed is required here."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def module(name: str) -> Any:
    return importlib.import_module(f"benchmarks.photodiode.{name}")


def test_the_page_shows_what_is_stored() -> None:
    contents = importlib.import_module("benchmarks.families").stored("photodiode")
    assert contents
    page = (ROOT / "docs" / "performance.md").read_text()
    shown = "\n".join(module("report").markdown(content) for content in contents.values())
    assert f"<!-- photodiode -->\n{shown}<!-- end" in page, "run `make bench-photodiode`"
    for family, content in contents.items():
        assert content["machine"]["llvm_name"] == family
        found = list(module("report").targets(content))
        assert len(found) == 12
        assert all(met for *_, met in found)
        assert all(row["same_bits"] for row in content["loop"]["rows"])


@pytest.mark.slow
def test_native_and_driven_iterations_are_the_same() -> None:
    found = module("loop").measure_loop(True)
    (row,) = found["rows"]
    assert row["rows"] == 91
    assert row["same_bits"]
    assert "| 91 | " in module("report").markdown(frame() | {"loop": found})


@pytest.mark.slow
def test_a_step_of_light_in_equal_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The substitute for DEVSIM returns one current."""
    peer, transients = module("peer"), module("transients")
    script = tmp_path / "peer.py"
    found = {"J": [-1.0] * 51, "seconds": 5.0, "iterations": 100}
    script.write_text(f"print({json.dumps(json.dumps(found))})")
    monkeypatch.setattr(peer, "TRANSIENT", script)
    measured = transients.measure_transients(True, Path(sys.executable))
    own, *others = measured["rows"]
    assert own["error"] < 1e-3
    methods = ("bdf1", "tr", "tr_bdf2")
    assert [row["name"] for row in others] == [f"{m}, {p}" for p in ("double", "extended") for m in methods]
    assert [row["digits"] < 1.0 for row in others if "digits" in row] == [True, True]
    assert measured["digits_of_both"] < 1.0
    shown = module("report").markdown(frame() | {"transients": measured, "devsim": "0"})
    assert "| 50 | DEVSIM, tr, double precision | " in shown
    assert "| 1e+02 | 2.0 |" in shown


def test_equal_digits() -> None:
    equal = module("digits").equal_digits
    assert equal(1.25e-7, 1.25e-7) == 16
    assert equal(-1.234567894, -1.23456789) == 9
    assert equal(-1.234567896, -1.23456789) == 8
    assert equal(9.99999999e-5, 1.0e-4) == 9
    assert equal(-1e-7, 1e-7) == 0


@pytest.mark.slow
def test_a_curve_beside_a_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The substitute for DEVSIM returns one current, and gives up at the next voltage."""
    peer, speed = module("peer"), module("speed")
    row = {"V": 0.0, "J": -1.5604286836e-12, "J_cathode": -1.5604286836e-12}
    curve = {"rows": [row], "given_up": -2.0, "seconds": 100.0, "iterations": 7}
    script = tmp_path / "peer.py"
    script.write_text(f"print('...')\nprint({json.dumps(json.dumps({'curves': {'dark': curve, 'lit': curve}}))})")
    monkeypatch.setattr(peer, "PEER", script)
    found = speed.measure_speed(True, Path(sys.executable))
    (row,) = found["rows"]
    assert row["extended"]["reached"] == 2
    assert row["extended"]["asked"] == 4
    assert row["extended"]["times_as_fast"] > 1.0
    shown = module("report").markdown(frame() | {"speed": found, "devsim": "0"})
    assert "| 91 | DEVSIM, extended precision | 200 | 14 | at least " in shown


def test_devsim_gets_all_numbers_of_a_device() -> None:
    peer, ours = module("peer"), module("ours")
    silicon = ours.silicon()
    found = peer.numbers(silicon, ionisation=False)
    x = found["x"]
    assert x.size == 679
    # Spacings of 0.1 nm, to all digits.
    assert abs((x[1:] - x[:-1]) / silicon.lengths[0][1:-1] - 1.0).max() < 1e-12
    assert not found["a_n"].any()
    assert set(peer.numbers(ours.apd(20), ionisation=True)["a_p"]) == {2.04e6, 3.95e6, 0.0}
    with pytest.raises(ValueError, match="not written for DEVSIM"):
        peer.numbers(ours.apd(20, None), ionisation=True)


def test_without_the_peer(tmp_path: Path) -> None:
    assert module("peer").version(tmp_path / "python") is None
    assert module("peer").version(Path(sys.executable)) is None
    assert "DEVSIM was not installed" in module("report").markdown(frame() | {"digits": None, "devsim": None})


@pytest.mark.slow
def test_spectra_beside_a_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The substitute for DEVSIM returns the capacitances at 0 V."""
    peer, spectra = module("peer"), module("spectra")
    points = [{"f": f, "G": 1e-7, "C": c, "seconds": 5e-3} for f, c in zip(spectra.SEEN, (7.28663176e-8, 1.0, 1.0))]
    script = tmp_path / "peer.py"
    script.write_text(f"print('...')\nprint({json.dumps(json.dumps({'rows': [{'V': 0.0, 'spectrum': points}]}))})")
    monkeypatch.setattr(peer, "SPECTRA", script)
    found = spectra.measure_spectra(True, Path(sys.executable))
    assert [row["digits_C"] >= 8 for row in found["rows"]] == [True, False, False]
    assert found["seconds"]["double"] == 5e-3
    assert "| 0 | 100 | 1.5392e-07 | 1e-07 | 7.28663176e-08 |" in module("report").markdown(frame() | {"ac": found})


@pytest.mark.slow
def test_digits_of_devsim() -> None:
    peer = module("peer")
    if peer.version(peer.PYTHON) is None:
        pytest.skip("DEVSIM is not installed: make bench-photodiode")
    assert module("digits").measure_digits(True, peer.PYTHON)["fewest"] >= 9


def frame() -> dict[str, Any]:
    return {"date": "2000-01-01", "machine": {"processor": "a", "llvm_name": "znver4", "usable_cores": 1, "load": 0.0}}
