"""Which cells of the grid a report's figures show, and so where blocks lie over them."""

from __future__ import annotations

from minga.view.report.decomposition import Window, window_of


def test_a_window_is_what_frames_keep() -> None:
    output = {"region": {"z": [12, 68], "x": [10, 31]}, "decimate": {"x": 2}}
    window = window_of(output, (80, 56, 108), ("z", "y", "x"))
    assert window == Window((12, 0, 10), (68, 56, 31), (1, 1, 2))
    assert (window.cell(0, 28), window.cell(2, 10)) == (40, 30)
    assert window_of({"decimate": 3}, (9,), ("x",)).stride == (3,)
    whole = Window((0, 0), (4, 5), (1, 1))
    assert window_of(None, (4, 5), ("y", "x")) == window_of({"region": "all"}, (4, 5), ("y", "x")) == whole
