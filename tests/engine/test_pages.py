"""Memory that is lent, and lent again."""

from __future__ import annotations

import numpy as np
import pytest

from minga.engine import pages
from minga.engine.pages import LEAST, borrowed

KEEPS = pytest.mark.skipif(
    not hasattr(pages.mmap, "MADV_FREE"), reason="memory is kept on systems with MADV_FREE only: run on Linux"
)


@pytest.mark.parametrize("size", [1, LEAST - 1, LEAST, LEAST + 12345])
def test_lent_memory_has_the_size_and_can_be_written(size: int) -> None:
    with borrowed(size) as memory:
        assert memory.nbytes == size
        memory[...] = 7
        assert (memory == 7).all()


def test_no_two_borrowers_share_memory() -> None:
    with borrowed(LEAST) as one, borrowed(LEAST) as other:
        assert not np.shares_memory(one, other)


@KEEPS
def test_the_largest_piece_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_SPARE", [])
    for size in (LEAST, 3 * LEAST, 2 * LEAST):
        with borrowed(size):
            pass
    assert [len(piece) for piece in pages._SPARE] == [3 * LEAST]
    with borrowed(3 * LEAST) as memory:
        assert not pages._SPARE
        address = memory.ctypes.data
    with borrowed(LEAST) as memory:
        assert memory.ctypes.data == address


@KEEPS
def test_memory_is_kept_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_SPARE", [])
    found: list[int] = []

    def fail() -> None:
        with borrowed(5 * LEAST) as memory:
            found.append(memory.ctypes.data)
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    with borrowed(5 * LEAST) as memory:
        assert memory.ctypes.data == found[0]
