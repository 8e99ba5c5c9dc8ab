"""Grids that cannot fit are refused before anything is allocated."""

from __future__ import annotations

import pytest

import minga as mg
from minga.cli import memory
from minga.errors import CaseError


@pytest.fixture(autouse=True)
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of one megabyte, on which this is the only process."""
    monkeypatch.setattr(memory, "machine_memory", lambda: 1 << 20)
    monkeypatch.setattr(memory, "surrounding_job", lambda: None)


def model(shape: tuple[int, ...]) -> mg.Model:
    u = mg.Field("u", mg.Grid(shape), "f4", slots=2)
    return mg.Model(name="x", grid=u.grid, fields=(u,), step=mg.Program("step"))


def test_all_time_levels_count() -> None:
    memory.check_fields(model((256, 512)))
    with pytest.raises(CaseError, match=r"grid.shape: \[257, 512\] is too large"):
        memory.check_fields(model((257, 512)))


def test_a_shape_alone_counts_a_byte_a_cell() -> None:
    memory.check_shape(None)
    memory.check_shape((1024, 1024))
    with pytest.raises(CaseError, match="too large") as caught:
        memory.check_shape((1025, 1024))
    assert caught.value.key == "grid.shape"


def test_a_job_may_have_many_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "surrounding_job", lambda: memory_job(8))
    memory.check_shape((1 << 20, 1 << 20))
    with pytest.raises(CaseError, match="more than can be numbered"):
        memory.check_shape((1 << 31, 1 << 31))


def test_a_system_that_does_not_tell_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "machine_memory", lambda: None)
    memory.check_shape((1 << 20, 1 << 20))


def memory_job(size: int):  # type: ignore[no-untyped-def]
    from minga.launch.launcher import Job

    return Job(0, size, "srun")
