"""Wavelets in files: forms of text, and samples at other times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from minga.errors import CaseError
from minga.models.waves.wavelet_file import read_wavelet, resampled, spectrum_peak


@pytest.mark.parametrize(
    ("name", "text", "dt"),
    [
        ("a.txt", "1\n2 # two\n\n# nothing\n4\n", 0.5),
        ("b.csv", "0.0, 1\n0.5, 2\n1.0, 4\n", None),
        ("c.txt", "0 1\n0.5 2\n1 4", 0.5),
    ],
)
def test_forms_of_text(tmp_path: Path, name: str, text: str, dt: float | None) -> None:
    (tmp_path / name).write_text(text)
    samples, step = read_wavelet(name, dt, tmp_path, "k")
    assert (samples.tolist(), step) == ([1.0, 2.0, 4.0], 0.5)


@pytest.mark.parametrize(
    ("text", "dt", "said"),
    [
        ("", 0.1, "0 values"),
        ("1 2 3\n4 5 6\n", None, "2 x 3 values"),
        ("1 2\n3\n", None, "as numbers"),
        ("0 1\n1 2\n2 nan\n", None, "sample 3"),
        ("0 1\n1 2\n", 0.5, "the case states 0.5 s"),
        ("1\n2\n", None, "interval between its samples"),
    ],
)
def test_what_is_no_wavelet(tmp_path: Path, text: str, dt: float | None, said: str) -> None:
    (tmp_path / "w.txt").write_text(text)
    with pytest.raises(CaseError, match=said):
        read_wavelet("w.txt", dt, tmp_path, "k")


@pytest.mark.parametrize("new", [2e-3, 1.3e-3, 7e-4, 3.1e-3])
def test_a_pulse_keeps_its_form_at_other_steps(new: float) -> None:
    def pulse(times: np.ndarray) -> np.ndarray:
        return np.exp(-(((times - 0.1) / 0.015) ** 2)) * np.cos(120 * times)

    old = 2e-3
    found = resampled(pulse(np.arange(0, 0.2, old)), old, new)
    times = np.arange(len(found)) * new
    assert times[-1] <= 0.2 - old + 1e-9
    assert times[-1] + new > 0.2 - old
    assert np.abs(found - pulse(times)).max() < 1e-4


def test_the_peak_of_a_spectrum() -> None:
    times = np.arange(0, 0.4, 1e-3)
    e = (np.pi * 20 * (times - 0.1)) ** 2
    assert spectrum_peak((1 - 2 * e) * np.exp(-e), 1e-3) == pytest.approx(20, rel=0.02)
