"""Files that are there whole or not at all, past the page cache or through it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from minga.engine.copy_out import page_aligned
from minga.output.snapshots import files
from minga.output.snapshots.chunks import PAGE
from minga.output.snapshots.counters import Counters
from minga.output.snapshots.files import Disk

SIZE = (1 << 20) + 100


def content() -> np.ndarray:
    buffer = page_aligned(SIZE + -SIZE % PAGE)
    buffer[:SIZE] = np.random.default_rng(1).integers(0, 256, SIZE, "u1")
    return buffer


@pytest.mark.parametrize("direct", [True, False])
def test_a_file_has_the_bytes_and_the_size_that_were_asked_for(tmp_path: Path, direct: bool) -> None:
    counters, data = Counters(), content()
    disk = Disk(counters, durable=True, direct=direct)
    disk.write(tmp_path / "a", data, SIZE)
    disk.write(tmp_path / "b", b"small")
    disk.settle()
    assert (tmp_path / "a").read_bytes() == data[:SIZE].tobytes()
    assert (tmp_path / "b").read_bytes() == b"small"
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]
    assert counters.direct + counters.buffered == direct  # whichever the file system under the tests can do
    assert counters.write > 0


@pytest.mark.parametrize("where", ["open", "write"])
def test_a_file_system_that_wants_its_cache_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    asked = []

    def refuse(name: str) -> None:
        real = getattr(os, name)

        def function(first, *rest):  # type: ignore[no-untyped-def]
            direct = name == "open" and rest[0] & os.O_DIRECT
            if direct:
                asked.append(first)
            if (name == where == "open" and direct) or (name == where == "write" and len(asked) == 1 and not done):
                done.append(1)
                raise OSError(errno.EINVAL, "Invalid argument")
            return real(first, *rest)

        monkeypatch.setattr(files.os, name, function)

    done: list[int] = []
    refuse("open")
    refuse("write")
    counters, data = Counters(), content()
    disk = Disk(counters, direct=True)
    disk.write(tmp_path / "a", data, SIZE)
    disk.write(tmp_path / "b", data, SIZE)
    assert len(asked) == 1
    assert (counters.direct, counters.buffered) == (0, 1)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == data[:SIZE].tobytes()


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails_halfway_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, direct: bool
) -> None:
    real = os.write

    def half(handle: int, data: memoryview) -> int:
        if len(data) > 1000:
            return (
                real(handle, data[: len(data) // 2 // PAGE * PAGE or 1])
                if not seen.append(1) and len(seen) == 1
                else fail()
            )
        return real(handle, data)

    def fail() -> int:
        raise OSError(code, os.strerror(code))

    seen: list[int] = []
    monkeypatch.setattr(files.os, "write", half)
    disk = Disk(Counters(), direct=direct)
    (tmp_path / "a").write_bytes(b"before")
    with pytest.raises(OSError, match=os.strerror(code)):
        disk.write(tmp_path / "a", content(), SIZE)
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"before"


def test_a_line_that_does_not_fit_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, path = Disk(Counters()), tmp_path / "manifest.jsonl"
    disk.append(path, "one\n")
    real = os.write

    def half(handle: int, data: memoryview) -> int:
        if len(data) < 10:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(handle, data[:10])

    monkeypatch.setattr(files.os, "write", half)
    with pytest.raises(OSError, match="No space"):
        disk.append(path, "two, which is longer\n"[:15])
    monkeypatch.undo()
    disk.append(path, "three\n")
    assert path.read_text() == "one\nthree\n"


def test_a_slow_disk_for_experiments(tmp_path: Path) -> None:
    told: list[int] = []
    disk = Disk(Counters(), throttle=told.append)
    data = page_aligned(40 << 20)
    disk.write(tmp_path / "a", data)
    disk.append(tmp_path / "b", "not counted\n")
    assert sum(told) == 40 << 20
    assert max(told) <= 16 << 20
