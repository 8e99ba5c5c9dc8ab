"""The file of an inversion: it belongs to one inversion, and a damaged one is refused."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.errors import CaseError
from minga.models.waves import Inversion, PointSource, Receivers, Ricker, Wavelet
from minga.models.waves.digests import digest
from minga.models.waves.inversion_file import identity
from wave_inverse import SPREAD, START, Z, inversion, shots

VALUES = {"vp": START}


def weighted(found: Any, data: Any) -> tuple[float, Any]:
    rest = found - data
    return float((rest * rest).sum()), 2 * rest


def other(found: Any, data: Any) -> tuple[float, Any]:
    return weighted(found, data)


FIRST, SECOND = shots()
VARIANTS: dict[str, dict[str, Any]] = {
    "data": {"shots": [replace(FIRST, data=2 * FIRST.data), SECOND]},
    "order of shots": {"shots": [SECOND, FIRST]},
    "wavelet": {"shots": [replace(FIRST, sources=[replace(FIRST.sources[0], wavelet=Ricker(26.0))]), SECOND]},
    "source": {"shots": [replace(FIRST, sources=[replace(FIRST.sources[0], position=(20.0, 40.0))]), SECOND]},
    "receivers": {"shots": [replace(FIRST, receivers=replace(SPREAD, every=2)), SECOND]},
    "positions": {"shots": [replace(FIRST, receivers=Receivers([*SPREAD.positions[:-1], (10.0, 131.0)])), SECOND]},
    "record": {"shots": [replace(FIRST, record=("vz",)), SECOND]},
    "bounds": {"bounds": {"vp": (1500, 2700)}},
    "mask": {"mask": Z > 2},
    "misfit": {"misfit": "envelope"},
    "units": {"units": {"vp": 1000.0}},
    "method": {"method": "gauss-newton"},
    "precondition": {"precondition": "illumination"},
}


def test_an_identity_counts_all_that_determines_the_search() -> None:
    given = inversion(bounds={"vp": (1500, 2600)})
    known = identity(given, VALUES)
    copied = [replace(shot, data=np.array(shot.data)) for shot in given.shots]
    assert identity(replace(given, shots=copied, threads=2, memory=10**6), VALUES) == known
    assert identity(given, {"vp": START + 1e-9}) != known
    for name, options in VARIANTS.items():
        assert identity(replace(given, **options), VALUES) != known, name
    newton = replace(given, method="gauss-newton")
    assert identity(replace(newton, damping=np.float64(1e-3), inner=np.int64(8)), VALUES) == identity(newton, VALUES)
    for options in ({"damping": 2e-3}, {"inner": 7}):
        assert identity(replace(newton, **options), VALUES) != identity(newton, VALUES)


def test_functions_count_by_their_names_and_wavelets_by_all_their_values() -> None:
    assert identity(inversion(misfit=weighted), VALUES)["misfit"] == digest(f"{__name__}.weighted")
    assert identity(inversion(misfit=other), VALUES) != identity(inversion(misfit=weighted), VALUES)
    samples = np.zeros(5000)
    changed = samples.copy()
    changed[2500] = 1e-12
    sources = [PointSource((20.0, 30.0), Wavelet(each)) for each in (samples, samples.copy(), changed)]
    assert digest(sources[0]) == digest(sources[1]) != digest(sources[2])


@pytest.mark.slow
def test_a_file_of_another_inversion_is_refused(tmp_path: Path) -> None:
    """Even for a third call, with the arguments of a second one that was refused."""
    file = tmp_path / "vp.npz"
    one = inversion(bounds={"vp": (1500, 2600)})
    one.run(VALUES, 1, file=file)
    before = file.read_bytes()
    two = replace(one, bounds={"vp": (1500, 2700)})
    for _ in range(2):
        with pytest.raises(CaseError, match="of another inversion: it has other bounds") as error:
            two.run(VALUES, 2, file=file)
        assert error.value.key == "file"
    with pytest.raises(CaseError, match="it has other shots"):
        replace(one, **VARIANTS["data"]).run(VALUES, 2, file=file)
    with pytest.raises(CaseError, match="it has other start"):
        one.run({"vp": START + 1}, 2, file=file)
    assert file.read_bytes() == before
    assert one.run(VALUES, 2, file=file).misfits == one.run(VALUES, 2).misfits


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """An archive that is cut, one with a changed byte, and archives with other arrays."""
    file = tmp_path / "vp.npz"
    given = inversion()
    given.run(VALUES, 1, file=file)
    good = file.read_bytes()
    flipped = [bytearray(good) for _ in range(3)]
    for number, content in enumerate(flipped, 1):
        content[len(good) * number // 4] ^= 0xFF
    with np.load(file) as stored:
        whole = {name: stored[name] for name in stored.files}
    plain = io.BytesIO()
    np.save(plain, START)
    contents = [good[: len(good) // 2], b"", b"text", plain.getvalue(), *map(bytes, flipped)]
    changes: list[dict[str, Any]] = [
        {"misfits": np.float64(1.0)}, {"misfits": np.zeros(0)}, {"misfits": np.full(2, np.nan)}, {"vp": START[1:]},
        {"vp": START * np.nan}, {"vp": START.astype(str)}, {"evaluated": np.zeros(7)}, {"key": np.array("x")},
        {"gradients": whole["gradients"][:, 1:]}, {"more": START},
    ]  # fmt: skip
    for change in changes:
        stream = io.BytesIO()
        np.savez(stream, allow_pickle=False, **(whole | change))
        contents.append(stream.getvalue())
    for content in contents:
        file.write_bytes(content)
        with pytest.raises(CaseError) as error:
            given.run(VALUES, 2, file=file)
        assert error.value.key == "file"
        assert error.value.remedy
    with pytest.raises(CaseError, match="cannot read"):
        given.run(VALUES, 2, file=tmp_path)
    for name in (5, "", ["a"]):
        with pytest.raises(CaseError, match="file of an inversion"):
            given.run(VALUES, 2, file=name)  # type: ignore[arg-type]


def test_no_value_is_outside_the_bounds_if_nothing_changes() -> None:
    found = Inversion(shots(), inversion().waves, bounds={"vp": (1950.0, 2600.0)}).run(VALUES, 0)
    assert found.iteration <= 0
    assert np.array_equal(found.values["vp"], np.maximum(START, 1950.0))
