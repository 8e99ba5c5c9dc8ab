"""Runs that ask for a GPU where there is none, or too few of them: said before anything is started or written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from command_line import SMALL, in_process, nothing_written
from fake_device import FakeDevice
from minga.cli.devices import check_device, ranks_by_device
from minga.engine import engine
from minga.engine.comm import Comm
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


@pytest.mark.slow
def test_a_run_on_a_gpu_leaves_what_one_on_the_processor_leaves(
    in_tmp_path: Path, gpus: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices: list[FakeDevice] = []

    def open_fake(wish: str, comm: Comm) -> FakeDevice | None:
        if wish == "cpu":
            return None
        devices.append(FakeDevice())
        return devices[-1]

    monkeypatch.setattr(engine, "open_device", open_fake)
    (in_tmp_path / "small.toml").write_text(SMALL)
    gpus.count = 1
    digests = []
    for number, device in enumerate(("cpu", "gpu")):
        said = in_process("run", "small.toml", "--device", device, "-n", "1", "--out", f"run-{number}", "--json")
        assert said.status == 0, said.err
        digests.append(json.loads(said.out)["digest"])
    assert digests[0] == digests[1]
    assert len(devices) == 1
    assert any(entry[0] == "launch" for entry in devices[0].log)
    for frames in ("run-0", "run-1"):
        assert (in_tmp_path / frames / "fields.zarr").is_dir()
