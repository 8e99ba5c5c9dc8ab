"""Runs that ask for a GPU where there is none, or too few of them: said before anything is started or written."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from command_line import SMALL, in_process, nothing_written
from minga.cli.devices import check_device, ranks_by_device
from minga.errors import CaseError


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """CuPy, as it is where `gpus.count` are to be seen."""
    found = SimpleNamespace(count=2)
    runtime = SimpleNamespace(getDeviceCount=lambda: found.count)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    return found


@pytest.mark.parametrize("options", [("--device", "gpu"), ("--set", "run.device=gpu-shared", "-n", "2")])
def test_without_cupy(in_tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    (in_tmp_path / "small.toml").write_text(SMALL)
    with nothing_written(in_tmp_path):
        said = in_process("run", "small.toml", *options)
    assert said.status == 2
    assert said.out == ""
    assert 'run.device: device = "gpu" needs CuPy' in said.err
    assert 'fix: pip install "minga[gpu]"' in said.err
    assert "Traceback" not in said.err


def test_ranks_and_gpus(gpus: SimpleNamespace) -> None:
    assert [ranks_by_device(word) for word in ("cpu", "gpu", "gpu-shared")] == [None, 2, 1]
    for device, ranks in (("cpu", 9), ("gpu", 2), ("gpu-shared", 9)):
        check_device(device, ranks)
    with pytest.raises(CaseError, match=r"3 ranks, but this machine has 2 GPUs(.|\n)*gpu-shared"):
        check_device("gpu", 3)
    gpus.count = 0
    with pytest.raises(CaseError, match="this machine has no GPU"):
        check_device("gpu", 1)
