"""Real MPI ranks on the nodes of labs: as many as asked, where asked, over the links, and none left afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from command_line import SMALL, in_process
from minga.errors import CaseError, LaunchError, RunError
from minga.lab import launch
from minga.lab.cluster import Cluster, laboratory
from minga.lab.config import Lab, LabNode, read_lab
from minga.lab.launch import end, mpi_environment, spread, start, started
from minga.launch.implementations import NAMES, Implementation, find_implementation
from missing import missing
from thinned import thinned

PAYLOAD = 300_000

RING = """\
import json, os, socket, sys, time
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
node = world.Split_type(MPI.COMM_TYPE_SHARED)
sent = np.full(int(sys.argv[1]), world.rank, np.uint8)
got = np.empty_like(sent)
world.Barrier()
start = time.perf_counter()
world.Sendrecv(sent, (world.rank + 1) % world.size, recvbuf=got, source=(world.rank - 1) % world.size)
world.Barrier()
seconds = time.perf_counter() - start
one = {"host": socket.gethostname(), "size": world.size, "node": node.size, "seconds": seconds}
one |= {"right": bool((got == (world.rank - 1) % world.size).all()), "library": MPI.Get_library_version()}
one["pin"] = len(os.sched_getaffinity(0))
everyone = world.gather(one)
if world.rank == 0:
    print(json.dumps(everyone))
"""

NODES = tuple(LabNode(name, 1.0, None, 100e6) for name in ("ant", "bee", "cat"))


@pytest.fixture(scope="module")
def cluster(rights: dict[str, Any]) -> Iterator[Cluster]:
    with laboratory(Lab("ranks", NODES), **rights | {"quota": False}) as cluster:
        yield cluster


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    path = tmp_path / "ring.py"
    path.write_text(RING)
    return path


def available(name: str) -> Implementation:
    try:
        return find_implementation(name)
    except LaunchError as error:
        if name == "mpich":
            raise
        pytest.skip(missing(error))


def wait_for(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds
        time.sleep(0.02)


def nobody(cluster: Cluster) -> bool:
    return not any(cluster.processes().values())


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("name", NAMES)
def test_ranks_are_where_they_should_be_and_talk_over_the_links(name: str, cluster: Cluster, ring: Path) -> None:
    mpi = available(name)
    before = cluster.counters()
    done = cluster.run(["python", str(ring), str(PAYLOAD)], 4, name, timeout=100)
    assert done.returncode == 0, done.stderr
    ranks = json.loads(done.stdout)
    assert [rank["host"] for rank in ranks] == ["ant", "ant", "bee", "cat"]
    assert [rank["node"] for rank in ranks] == [2, 2, 1, 1]
    assert {rank["size"] for rank in ranks} == {4}
    assert all(rank["right"] for rank in ranks)
    assert {mpi.vendor in rank["library"].replace("(R)", "") for rank in ranks} == {True}
    assert {rank["pin"] for rank in ranks} == {len(os.sched_getaffinity(0))}  # bound to no core of its own
    sent = [after.sent_bytes - before[node].sent_bytes for node, after in cluster.counters().items()]
    assert all(PAYLOAD < count < 1.5 * PAYLOAD + 200_000 for count in sent), sent
    assert max(rank["seconds"] for rank in ranks) > 0.9 * PAYLOAD * 8 / 100e6
    wait_for(lambda: nobody(cluster))


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("name", ["mpich", *(pytest.param(m, marks=pytest.mark.slow) for m in ("openmpi", "impi"))])
def test_a_run_on_the_nodes_has_the_bits_of_a_run_alone(name: str, cluster: Cluster, tmp_path: Path) -> None:
    available(name)
    (tmp_path / "case.toml").write_text(SMALL.replace("[run]", '[run]\nlayout = "slabs"').replace("ranks = 1\n", ""))
    alone = in_process("run", tmp_path / "case.toml", "-n", 1, "--out", tmp_path / "alone", "--json")
    words = ["minga", "run", str(tmp_path / "case.toml"), "--out", str(tmp_path / "run"), "--json"]
    done = cluster.run(words, 3, name, timeout=100)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["ranks"] == 3
    assert result["digest"] == json.loads(alone.out)["digest"]
    ledger = json.loads((tmp_path / "run" / "ledger.json").read_text())
    assert ledger["machine"]["levels"][0] == "node"
    assert [seat[0] for seat in ledger["machine"]["seats"]] == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.mpi
def test_ranks_at_a_hub_share_its_rate(rights: dict[str, Any], ring: Path) -> None:
    lab = Lab("hub", NODES, wiring="hub", rate=10e6, loss=0.002, seed=4)
    with laboratory(
        replace(lab, nodes=tuple(replace(n, rate=10e6) for n in NODES)), **rights | {"quota": False}
    ) as hub:
        done = hub.run(["python", str(ring), "100000"], timeout=100)
        assert done.returncode == 0, done.stderr
        ranks = json.loads(done.stdout)
        assert len(ranks) == 3
        assert all(rank["right"] for rank in ranks)
        # A switch would take a third; the first rank to leave the barrier has seen all of it.
        assert max(rank["seconds"] for rank in ranks) > 0.8 * 3 * 100_000 * 8 / 10e6


@pytest.mark.mpi
@pytest.mark.parametrize("victim", thinned([0, 1], 1))
def test_a_node_that_is_killed_is_named_and_nothing_is_left(victim: int, cluster: Cluster, tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text(
        "import pathlib, time\nfrom mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n"
        f"pathlib.Path({str(tmp_path)!r}, str(MPI.COMM_WORLD.rank)).touch()\ntime.sleep(100)\n"
    )

    def kill() -> None:
        wait_for(lambda: all((tmp_path / str(rank)).exists() for rank in range(3)))
        there = cluster.processes()[victim]
        for number in (signal.SIGSTOP, signal.SIGKILL):  # all at once: none sees another one end
            for pid in there:
                os.kill(pid, number)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(RunError, match=f"node '{NODES[victim].name}' was lost"):
        cluster.run(["python", str(program)], timeout=200)
    killer.join()
    wait_for(lambda: nobody(cluster))


def test_a_report_of_a_lost_node_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher may end before the script that it called for the node."""
    monkeypatch.setattr(launch, "_REPORT", 100.0)
    late = f"sleep 0.2; echo ant > {tmp_path}/lost"
    with subprocess.Popen(["sh", "-c", late], env={**os.environ, launch._MARK: tmp_path.name}):
        launch._await_report(tmp_path)
        assert (tmp_path / "lost").read_text() == "ant\n"


@pytest.mark.slow
@pytest.mark.mpi
def test_a_program_that_does_not_end_is_ended(cluster: Cluster) -> None:
    with pytest.raises(RunError, match="did not end within 1 seconds"):
        cluster.run(["sleep", "100"], timeout=1.0)
    wait_for(lambda: nobody(cluster))


@pytest.mark.slow
@pytest.mark.mpi
def test_a_lab_that_breaks_ends_its_job(rights: dict[str, Any]) -> None:
    with laboratory(Lab("breaks", NODES, wiring="hub"), **rights | {"quota": False}) as cluster:
        hub = cluster.state.hub
        assert hub is not None
        killer = threading.Timer(0.3, os.kill, (hub.pid, signal.SIGKILL))
        killer.start()
        with pytest.raises(RunError, match="broke while it was used: its hub has ended"):
            cluster.run(["sleep", "100"], 1, timeout=30)
        killer.join()


@pytest.mark.mpi
def test_an_interrupt_ends_a_program_that_does_not_listen(cluster: Cluster, tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text(
        "import os, pathlib, signal, time\nfrom mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n"
        f"pathlib.Path({str(tmp_path)!r}, str(MPI.COMM_WORLD.rank)).touch()\ntime.sleep(100)\n"
    )

    def interrupt() -> None:
        wait_for(lambda: all((tmp_path / str(rank)).exists() for rank in range(3)))
        os.kill(os.getpid(), signal.SIGINT)

    finger = threading.Thread(target=interrupt)
    finger.start()
    with pytest.raises(KeyboardInterrupt):
        cluster.run(["python", str(program)], timeout=60)
    finger.join()
    wait_for(lambda: nobody(cluster))


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_interrupt_asks_a_run_to_stop_and_keeps_what_it_has(name: str, cluster: Cluster, tmp_path: Path) -> None:
    available(name)
    run = tmp_path / "run"

    def interrupt() -> None:
        progress = run / "progress.json"
        wait_for(lambda: progress.exists() and '"running"' in progress.read_text(), 60)
        os.kill(os.getpid(), signal.SIGINT)

    finger = threading.Thread(target=interrupt)
    finger.start()
    words = ["minga", "run", "life", "--set", "run.steps=100000000", "--set", "run.layout=slabs", "--out", str(run)]
    words += ["--set", "output.every=1000000"]
    with pytest.raises(KeyboardInterrupt):
        cluster.run(words, mpi=name, timeout=100)
    finger.join()
    assert 0 <= json.loads((run / "result.json").read_text())["steps"] < 100_000_000
    wait_for(lambda: nobody(cluster))


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("cut", [True, False], ids=["cut", "stopped"])
@pytest.mark.parametrize("own", [True, False], ids=["launcher", "lab"])
def test_one_signal_ends_a_run_that_waits(rights: dict[str, Any], tmp_path: Path, cut: bool, own: bool) -> None:
    """For a node whose cable is cut, or for a rank that was stopped. All that can be reached ends, and can go on."""
    run = tmp_path / "run"
    words = ["minga", "run", "life", "--set", "run.steps=100000000", "--set", "run.layout=slabs", "--out", str(run)]
    words += ["--set", "output.every=1000000"]
    words += ["--set", "checkpoint.every=1000"]
    ended: list[float] = []

    def harm(folder: Path) -> None:
        wait_for(lambda: (run / "checkpoints/a/checkpoint.json").exists())
        if cut:
            lab.execute(2, ["ip", "link", "set", "eth0", "down"])
        else:
            os.kill(next(rank.pid for rank in started(folder) if rank.node == "cat"), signal.SIGSTOP)
        time.sleep(1)
        ended.append(time.monotonic())

    with laboratory(Lab("waiting", NODES), **rights | {"quota": False}) as lab:
        if own:  # as a person's own mpiexec does
            with tempfile.TemporaryDirectory(dir=lab.folder) as name:
                job = start(lab, words, (1, 1, 1), find_implementation(), Path(name))
                harm(Path(name))
                job.send_signal(signal.SIGTERM)
                assert job.wait(60) == 130
                assert time.monotonic() - ended[0] < 10
                end(job, Path(name))
        else:

            def ask() -> None:
                wait_for(lambda: any(lab.folder.glob("minga-job-*")))
                harm(next(lab.folder.glob("minga-job-*")))
                os.kill(os.getpid(), signal.SIGTERM)

            finger = threading.Thread(target=ask)
            finger.start()
            with pytest.raises(KeyboardInterrupt):
                lab.run(words, timeout=100)
            finger.join()
            assert time.monotonic() - ended[0] < 10
        wait_for(lambda: nobody(lab))
    steps = json.loads((run / "checkpoints/a/checkpoint.json").read_text())["checkpoint"]["step"] + 1000
    said = in_process("run", "--resume", run, "-n", 1, "--set", f"run.steps={steps}", "--json")
    assert said.status == 0, said


@pytest.mark.mpi
def test_the_status_of_the_ranks_is_passed_on(cluster: Cluster) -> None:
    assert cluster.run(["sh", "-c", "exit 4"], 1, timeout=30).returncode == 4


@pytest.mark.mpi
def test_ranks_that_no_launcher_started_are_missed(cluster: Cluster, tmp_path: Path) -> None:
    liar = tmp_path / "mpiexec"
    liar.write_text('#!/bin/sh\nwhile [ "${1##*/}" != rank ]; do shift; done\nPMI_RANK=0 PMI_SIZE=1 "$@"\n')
    liar.chmod(0o755)
    mpi = replace(find_implementation("mpich"), launcher=liar)
    with pytest.raises(LaunchError, match="3 ranks on ant, bee, cat, and started 1 on ant"):
        cluster.run(["true"], 3, mpi, timeout=30)  # type: ignore[arg-type]


def test_what_cannot_be_started_is_explained(cluster: Cluster) -> None:
    with pytest.raises(CaseError, match="no program to run"):
        cluster.run([])
    with pytest.raises(CaseError, match="there is no program 'nonsuch'"):
        cluster.run(["nonsuch"])
    with pytest.raises(LaunchError, match="did you mean 'openmpi'"):
        cluster.run(["true"], mpi="openmp")
    mpi = Implementation("mpich", Path("/my mpi/bin/mpiexec"), Path("/my mpi/lib/libmpi.so"))
    with pytest.raises(LaunchError, match="no path with a blank in it: /my mpi"):  # MPICH would wait for ever
        cluster.run(["true"], mpi=mpi)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "counts"),
    [
        ((3,), (1, 1, 1)),
        ((3, 5), (2, 2, 1)),
        ((3, 2), (1, 1, 0)),
        ((3, None, 2), (2, 2, 2)),
        ((3, 3, 2), (2, 1, 0)),
        ((1, 4), (4,)),
    ],
)
def test_ranks_are_dealt_out_to_nodes(asked: tuple[int, ...], counts: tuple[int, ...]) -> None:
    assert spread(*asked) == counts


@pytest.mark.parametrize("asked", [(3, 0), (3, None, 0), (3, 7, 2)])
def test_numbers_of_ranks_that_cannot_be_are_told(asked: tuple[int, ...]) -> None:
    with pytest.raises(CaseError):
        spread(*asked)


@pytest.mark.parametrize("name", NAMES)
def test_every_mpi_is_told_to_use_tcp(name: str) -> None:
    words = mpi_environment(Implementation(name, Path("/mpi/bin/mpiexec"), Path("/mpi/lib/libmpi.so")))
    assert any("tcp" in value for value in words.values())
    assert words["MINGA_PIN"] == "off"
    assert words["MPI4PY_LIBMPI"] == "/mpi/lib/libmpi.so"


def test_the_file_of_the_page_is_a_lab(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "lab.md"
    (tmp_path / "mine.toml").write_text(page.read_text().split("```toml\n")[1].split("```")[0])
    lab = read_lab(tmp_path / "mine.toml")
    assert [node.name for node in lab.nodes] == ["fast", "slow-1", "slow-2", "slow-3"]
    assert lab.in_user_space
