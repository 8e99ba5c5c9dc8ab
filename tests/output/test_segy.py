"""SEG-Y files: what is written is read, the bytes are those of the standard, and what is none is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from minga.errors import CaseError, RunError
from minga.output.segy import SegyFile, ibm_to_ieee, write_segy

TRACES = np.arange(12, dtype="f4").reshape(3, 4) - 5.5


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.sgy"
    write_segy(file, TRACES, 0.002, headers={"x": [10, 20, 30], "offset": 7}, text=["a survey"])
    found = SegyFile.open(file)
    assert (len(found), found.samples, found.interval) == (3, 4, 2000)
    assert np.array_equal(found.traces(slice(0, 3)), TRACES)
    assert np.array_equal(found.traces([2, 0], slice(1, 3)), TRACES[[2, 0], 1:3])
    assert found.headers["x"].tolist() == [10, 20, 30]
    assert found.headers["offset"].tolist() == [7, 7, 7]
    assert found.headers["in_file"].tolist() == [1, 2, 3]


def test_bytes_lie_where_the_standard_says(tmp_path: Path) -> None:
    file = tmp_path / "a.sgy"
    write_segy(file, TRACES, 0.004, headers={"source_x": 123456, "inline": 5, "crossline": -2}, text=["hello"])
    data = file.read_bytes()
    assert len(data) == 3600 + 3 * (240 + 16)
    assert data[:3200].decode("cp037").startswith("C 1 HELLO ")
    assert data[:3200].decode("cp037")[-80:].startswith("C40 END TEXTUAL HEADER")

    def number(first: int, size: int, origin: int = 0) -> int:  # bytes counted from 1, as in the standard
        return int.from_bytes(data[origin + first - 1 : origin + first - 1 + size], "big", signed=True)

    assert [number(byte, 2) for byte in (3217, 3221, 3225, 3501, 3503)] == [4000, 4, 5, 256, 1]
    second = 3600 + 256
    assert number(5, 4, second) == 2
    assert number(73, 4, second) == 123456
    assert [number(115, 2, second), number(117, 2, second)] == [4, 4000]
    assert [number(189, 4, second), number(193, 4, second)] == [5, -2]
    assert np.frombuffer(data[second + 240 : second + 256], ">f4").tolist() == TRACES[1].tolist()


def test_ibm_floats() -> None:
    """Examples of the IBM System/360 manual: -118.625 is C276A000."""
    words = np.array([0xC276A000, 0x00000000, 0x41100000, 0x42640000, 0x40800000], np.uint32)
    assert ibm_to_ieee(words).tolist() == [-118.625, 0.0, 1.0, 100.0, 0.5]


@pytest.mark.parametrize(
    ("traces", "interval", "text"),
    [(TRACES, 0.1, "65535 microseconds"), (TRACES, 0.0, "microseconds"), (np.zeros((1, 70000)), 1e-3, "samples")],
)
def test_what_the_format_cannot_hold(tmp_path: Path, traces: np.ndarray, interval: float, text: str) -> None:
    with pytest.raises(CaseError, match=text):
        write_segy(tmp_path / "a.sgy", traces, interval)
    assert not list(tmp_path.iterdir())


def test_nothing_is_left_where_the_disk_refuses(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot write"):
        write_segy(tmp_path / "none" / "a.sgy", TRACES, 1e-3)


@pytest.mark.parametrize(("cut", "text"), [(100, "headers alone"), (3700, "do not fill"), (3600, "do not fill")])
def test_files_that_are_cut_off(tmp_path: Path, cut: int, text: str) -> None:
    file = tmp_path / "a.sgy"
    write_segy(file, TRACES, 1e-3)
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(CaseError, match=text):
        SegyFile.open(file)
