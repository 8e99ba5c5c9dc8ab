"""Shots of SEG-Y and SPS files in Python: geometry, data, times and dead traces."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
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
    shots_of_segy,
    shots_of_sps,
)
from minga.models.waves.elastic import ElasticMedium, Explosion

DT, EVERY, SAMPLES = 1e-3, 2, 21
WAVELET = Ricker(20.0, 0.06)
FRAME = Frame((1000.0, 2000.0), 30.0, 7.0)
SPREADS = ((60.0, 80.0, 100.0), (120.0, 150.0))


def point(place: tuple[float, ...]) -> PointSource:
    return PointSource(place, WAVELET)


def survey(**options: Any) -> Survey:
    shots = [
        Shot([point((20.0, x))], Receivers([(30.0, r) for r in spread], EVERY))
        for x, spread in zip((50.0, 110.0), SPREADS, strict=True)
    ]
    given: dict[str, Any] = {"frame": FRAME, "records": [7, 3], "delay": -0.06, "order": 4} | options
    return Survey((16, 30), 10.0, DT, Medium(2000.0), shots, Sponge(4), **given)


def test_a_file_has_the_shots_of_which_it_was_made(tmp_path: Path) -> None:
    made = survey()
    file = made.record(tmp_path / "a.sgy", SAMPLES)
    found = shots_of_segy(file, point, DT, frame=FRAME, zero=0.06)
    assert list(found) == [7, 3]
    for number, (shot, given) in enumerate(zip(found.values(), made.shots, strict=True)):
        (source,) = shot.sources
        assert source.wavelet is WAVELET
        assert source.position == pytest.approx(given.sources[0].position, abs=0.02)
        assert np.array(shot.receivers.positions) == pytest.approx(np.array(given.receivers.positions), abs=0.02)
        assert shot.receivers.every == EVERY
        assert shot.data is not None
        assert np.array_equal(shot.data, made.traces(number, SAMPLES).astype("f4"))


def test_times_of_files_are_those_of_the_waves(tmp_path: Path) -> None:
    """Samples before the start of the waves are left out, and 0 stands where the file begins later."""
    whole = survey().traces(0, SAMPLES).astype("f4")
    late = survey(first=4, delay=-0.052).record(tmp_path / "late.sgy", SAMPLES - 4)
    data = shots_of_segy(late, point, DT, frame=FRAME, zero=0.06)[7].data
    assert data is not None
    assert not data[:4].any()
    assert np.array_equal(data[4:], whole[4:])
    again = shots_of_segy(late, point, DT, frame=FRAME, zero=0.046)[7].data  # its waves start 14 ms later
    assert again is not None
    assert np.array_equal(again, whole[7:])


def test_dead_traces_are_left_out(tmp_path: Path) -> None:
    file = survey().record(tmp_path / "a.sgy", SAMPLES)
    content = bytearray(file.read_bytes())
    struct.pack_into(">h", content, 3600 + (240 + 4 * SAMPLES) + 28, 2)  # the second trace
    file.write_bytes(content)
    shot = shots_of_segy(file, point, DT, frame=FRAME, zero=0.06)[7]
    assert np.array(shot.receivers.positions)[:, 1] == pytest.approx([60.0, 100.0], abs=0.02)
    assert shot.data is not None
    assert np.array_equal(shot.data, survey().traces(0, SAMPLES).astype("f4")[:, [0, 2]])


def test_quantities_of_elastic_waves(tmp_path: Path) -> None:
    def blow(place: tuple[float, ...]) -> Explosion:
        return Explosion(place, WAVELET)

    shots = [Shot([blow((50.0, 100.0))], Receivers([(30.0, 60.0), (30.0, 90.0)], EVERY), record=("vz", "vx"))]
    made = Survey((16, 30), 10.0, DT, ElasticMedium(2000.0, 1000.0, 2000.0), shots, Sponge(4), order=4)
    file = made.record(tmp_path / "a.sgy", SAMPLES)
    shot = shots_of_segy(file, blow, DT, record=("vz", "vx"))[1]
    assert shot.traces == 4
    assert shot.data is not None
    assert np.array_equal(shot.data, made.traces(0, SAMPLES).astype("f4"))
    with pytest.raises(CaseError, match="does not have the traces of all receivers for vz, vx, vy"):
        shots_of_segy(file, blow, DT, record=("vz", "vx", "vy"))


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    file = survey().record(tmp_path / "a.sgy", SAMPLES)
    with pytest.raises(CaseError, match=r"samples every 2 ms, which is no multiple of 1\.5 ms"):
        shots_of_segy(file, point, 1.5e-3, frame=FRAME)
    with pytest.raises(CaseError, match="samples every 2 ms, which is no multiple of 3 ms"):
        shots_of_segy(file, point, 3e-3, frame=FRAME)
    with pytest.raises(CaseError, match="begins 1 ms after the waves, which is no multiple of 2 ms"):
        shots_of_segy(file, point, DT, frame=FRAME, zero=0.061)
    with pytest.raises(CaseError, match="the axes are 'xz'"):
        shots_of_segy(file, point, DT, axes="xz")
    with pytest.warns(UserWarning, match=r"a\.sgy: points up to .* m beside x were moved onto it"):
        shots_of_segy(file, point, DT)
    content = bytearray(file.read_bytes())
    struct.pack_into(">H", content, 3216, 0)
    file.write_bytes(content)
    with pytest.raises(CaseError, match="does not say the interval"):
        shots_of_segy(file, point, DT, frame=FRAME)
    struct.pack_into(">H", content, 3216, 2000)
    struct.pack_into("<h", content, 3224, 5)
    file.write_bytes(content)
    with pytest.raises(
        CaseError, match=r"(?s)survey\.segy\.file.*is 1280: its bytes are in the reverse order.*high bytes first"
    ):
        shots_of_segy(file, point, DT, frame=FRAME)
    struct.pack_into(">h", content, 3224, 5)
    struct.pack_into(">h", content, 3600 + 108, 4)
    file.write_bytes(content)
    with pytest.raises(CaseError, match="records begin at different times, -60 to 4 ms"):
        shots_of_segy(file, point, DT, frame=FRAME)


def test_shots_of_sps_files(tmp_path: Path) -> None:
    head = "H00 SPS format version num.     SPS 2.1;"

    def place(kind: str, number: int, easting: float) -> str:
        line = f"{kind}{'101':>10}{number:>10}"
        return f"{line:<46}{easting:>9.1f}{0.0:>10.1f}{-5.0:>6.1f}"

    relation = f"{'X':<7}{'901':>8}{'':2}{'101':>10}{'11':>10}1{'1':>5}{'3':>5}1{'101':>10}{'1':>10}{'3':>10}"
    for name, lines in (
        ("a.s", [place("S", 11, 150.0)]),
        ("a.r", [place("R", n, 100.0 + 20 * n) for n in (1, 2, 3)]),
        ("a.x", [relation]),
    ):
        (tmp_path / name).write_text("\n".join([head, *lines]))
    files = [tmp_path / name for name in ("a.s", "a.r", "a.x")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = shots_of_sps(*files, point, frame=Frame(datum=15.0), every=4)
    assert list(found) == [901]
    assert found[901].sources[0].position == (20.0, 150.0)
    assert found[901].receivers.positions == [(20.0, 120.0), (20.0, 140.0), (20.0, 160.0)]
    assert found[901].receivers.every == 4
    again = relation.replace("       11", "       12")
    files[0].write_text("\n".join([head, place("S", 11, 150.0), place("S", 12, 180.0)]))
    files[2].write_text("\n".join([head, relation, again]))
    with pytest.raises(CaseError, match="several shots have the number 901"):
        shots_of_sps(*files, point)
