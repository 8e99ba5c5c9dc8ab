"""The command ``minga matmul``: what it prints, what it refuses, and going on without ranks that are lost."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from command_line import command, in_process, nothing_written
from matmul_hands import close, matrix
from minga.errors import CaseError
from minga.launch.hosts import Host
from minga.models.matmul.cli.launch import _Places, _run
from minga.models.matmul.cli.matmul import MatmulRequest, _check, _check_place, _Progress


@pytest.fixture(autouse=True)
def matrices(in_tmp_path: Path) -> Path:
    np.save("a.npy", matrix(60, 40))
    np.save("b.npy", matrix(40, 50, seed=1))
    np.save("small.npy", matrix(3, 3))
    np.save("whole.npy", np.ones((40, 50), int))
    return in_tmp_path


def test_alone() -> None:
    said = in_process("matmul", "a.npy", "b.npy", "-o", "c.npy", "--alpha", "2")
    assert said.status == 0, said.err
    assert "60 x 40 times 40 x 50 of f8" in said.out
    assert "verified by Freivalds' check" in said.out
    assert "the result is c.npy" in said.out
    a, b = np.load("a.npy"), np.load("b.npy")
    assert close(np.load("c.npy"), 2 * a, b, 2 * a @ b)


def test_json_and_factors() -> None:
    in_process("matmul", "a.npy", "b.npy", "-o", "c.npy")
    said = in_process(
        "matmul", "b.npy", "a.npy", "--transpose-a", "--transpose-b", "-o", "d.npy", "--json", "--no-check"
    )  # fmt: skip
    account = json.loads(said.out)
    assert account["shape"] == [50, 60, 40]
    assert account["check"] is None
    a, b = np.load("a.npy"), np.load("b.npy")
    assert close(np.load("d.npy"), b.T, a.T, (a @ b).T)
    assert in_process("matmul", "a.npy", "b.npy", "--c", "c.npy", "--beta", "-1", "-o", "zero.npy").status == 0
    assert np.abs(np.load("zero.npy")).max() < 1e-12


def machine_file(speeds: list[float]) -> None:
    nodes = [
        {"name": f"pc{n}", "cores": 1, "speeds": {"cpu": {"matmul f8": speed}}} for n, speed in enumerate(speeds)
    ]  # fmt: skip
    links = {"inter-node": {"latency": "50 us", "bandwidth": "1 Gb/s"}}
    content = {"format": "minga machine", "version": 1, "name": "lab", "nodes": nodes, "links": links}
    Path("machine.json").write_text(json.dumps(content))


def test_whether_it_pays_on_machines_that_are_not_here() -> None:
    machine_file([4e10, 2e10, 1e10, 1e10])
    said = in_process("matmul", "a.npy", "b.npy", "--plan", "--machine", "machine.json")
    assert said.status == 0, said.err
    assert "rank 0 alone" in said.out
    assert "in a chain from rank to rank" in said.out
    assert "n* = " in said.out
    plan = json.loads(in_process("matmul", "a.npy", "b.npy", "--plan", "--machine", "machine.json", "--json").out)
    assert plan["break_even"] == pytest.approx(4 / 125e6 * 1.6e11, rel=0.1)  # a chain at a switch
    assert plan["plan"]["name"] == "alone"
    assert not list(Path.cwd().glob("*.partial"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.npy", "b.npy"], "-o: no file for the result"),
        (["a.npy", "none.npy", "-o", "c.npy"], "there is no file 'none.npy'"),
        (["a.npy", "small.npy", "-o", "c.npy"], "60 x 40"),
        (["a.npy", "whole.npy", "-o", "c.npy"], "f4, f8, c8 or c16"),
        (["a.npy", "machine.txt", "-o", "c.npy"], "as a .npy file"),
        (["a.npy", "b.npy", "-o", "c.txt"], "does not end in .npy"),
        (["a.npy", "b.npy", "-o", "no/c.npy"], "no such directory"),
        (["a.npy", "b.npy", "-o", "a.npy"], "is an operand"),
        (["a.npy", "b.npy", "-o", "c.npy", "--layout", "ring"], "no layout 'ring'"),
        (["a.npy", "b.npy", "-o", "c.npy", "--route", "pigeon"], "no route 'pigeon'"),
        (["a.npy", "b.npy", "-o", "c.npy", "--memory", "much"], "--memory"),
        (["a.npy", "b.npy", "-o", "c.npy", "--memory", "400"], "not enough"),
        (["a.npy", "b.npy", "-o", "c.npy", "--beta", "1"], "there is no c"),
        (["a.npy", "b.npy", "-o", "c.npy", "-n", "0"], "0 ranks"),
        (["a.npy", "b.npy", "-o", "c.npy", "--threads", "0"], "0 threads"),
        (["a.npy", "b.npy", "-o", "c.npy", "-n", "2", "--width", "-3"], "panels of -3"),
        (["a.npy", "small.npy", "-o", "c.npy", "-n", "2"], "60 x 40"),
        (["a.npy", "b.npy", "-o", "c.npy", "-n", "2", "--hosts", "h"], "exclude each other"),
        (["a.npy", "b.npy", "--plan", "--machine", "machine.json"], "how fast node 'old' multiplies"),
    ],
)
def test_wrong_words_are_told(words: list[str], said: str, in_tmp_path: Path) -> None:
    Path("machine.txt").write_text("no matrix")
    content = {
        "format": "minga machine",
        "version": 1,
        "name": "lab",
        "nodes": [{"name": "old", "cores": 2}],
        "links": {},
    }
    Path("machine.json").write_text(json.dumps(content))
    with nothing_written(in_tmp_path):
        found = in_process("matmul", *words)
    assert found.status == 2
    assert said in found.err
    assert "Traceback" not in found.err


@pytest.mark.slow
@pytest.mark.mpi
def test_a_rank_that_is_killed_is_done_without(in_tmp_path: Path) -> None:
    """Two ranks, one of which is killed as soon as blocks are listed: the other's next life does what is missing."""
    for side in (1000, 2000, 4000):
        np.save("a.npy", matrix(side, side))
        np.save("b.npy", matrix(side, side, seed=1))
        out, err = product_with_a_loss(in_tmp_path / "c.npy.partial")
        if "a rank was lost" in err:
            break  # else it was done before: this machine is busy
    assert "a rank was lost; continuing with 1 rank" in err
    account = json.loads(out)
    assert 0 < account["there_before"] < 1
    a, b = np.load("a.npy"), np.load("b.npy")
    assert close(np.load("c.npy"), a, b, a @ b)
    assert not (in_tmp_path / "c.npy.partial").exists()


def product_with_a_loss(partial: Path) -> tuple[str, str]:
    """What is printed where one of two ranks is killed when it lists its first block."""
    words = command("matmul", "a.npy", "b.npy", "-o", "c.npy", "-n", "2", "--width", "8", "--layout", "rows", "--json")
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    job = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    killed = False
    while job.poll() is None and not killed:
        for file in partial.glob("done-*.txt"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(file.stem.rpartition("-")[2]), signal.SIGKILL)
            killed = True
            break
        time.sleep(0.002)
    out, err = job.communicate(timeout=120)
    assert job.returncode == 0, err
    return out, err


def test_places_that_are_left() -> None:
    places = _Places(0, [Host("pc1"), Host("pc2", 2, "10.0.0.2")])
    assert places.without("pc2").hosts == places.hosts[:1]
    assert places.without("10.0.0.2").hosts == places.hosts[:1]
    assert places.without("pc1").hosts == places.hosts[1:]
    assert places.without(None).ranks == 3
    assert _Places(4).without(None).ranks == 3


def test_a_silent_host_ends_what_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what the launcher leaves behind, as it does connections: that holds the ends of our pipes."""
    monkeypatch.setattr("minga.models.matmul.cli.launch._LOOKS", 0.01)
    monkeypatch.setattr("minga.models.matmul.cli.launch._answers", lambda host, shell: False)
    words = ["sh", "-c", "sleep 300 & wait"]
    end = _run(words, dict(os.environ), _Places(0, [Host("pc1")]), MatmulRequest(Path("a.npy"), Path("b.npy")))
    assert (end.lost, end.answered) == ("pc1", False)


def test_asked_to_end_it_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)

    class Asking:
        def write(self, text: str) -> None:
            told.append(int(text))
            os.kill(os.getpid(), signal.SIGTERM)

        def flush(self) -> None:
            return None

    monkeypatch.setattr("sys.stderr", Asking())
    words = ["sh", "-c", "sleep 300 & echo $! >&2; wait"]
    try:
        with pytest.raises(KeyboardInterrupt) as end:
            _run(words, dict(os.environ), _Places(1), MatmulRequest(Path("a.npy"), Path("b.npy")))
        assert end.value.args == (signal.SIGTERM,)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and _runs(told[0]):
        time.sleep(0.01)
    assert not _runs(told[0])


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_each_part_of_a_product_counts_its_own_panels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("minga.models.matmul.cli.matmul._SAID", -1.0)
    progress = _Progress()
    for total in (3, 1, 4):
        for done in range(1, total + 1):
            progress(done, total)
    said = [line.split(" panels")[0] for line in capsys.readouterr().err.splitlines()]
    assert said == ["minga: 2 of 3", "minga: 2 of 4", "minga: 3 of 4"]


def test_ranks_elsewhere_need_not_see_where_the_result_goes() -> None:
    request = MatmulRequest(Path("a.npy"), Path("b.npy"), Path("elsewhere/c.npy"))
    _check(request)
    with pytest.raises(CaseError, match="no such directory"):
        _check_place(request)
