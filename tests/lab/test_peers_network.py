"""Agreement within a tenth with NetPIPE and the Intel MPI Benchmarks, on one lab, in turns."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minga.engine.pin import available_cores
from minga.errors import LaunchError
from minga.fit.network.exchanges import Ends, ladder_of
from minga.fit.network.hosts import Host, agents
from minga.lab.cluster import Cluster, laboratory
from minga.lab.config import Lab, LabNode
from minga.lab.implementations import find_implementation

RATE = 100e6
TWO = Lab("peers", (LabNode("one", 1.0, None, RATE), LabNode("two", 1.0, None, RATE)), rate=RATE)
SIZES = [1024, 65536, 262144, 1048576]
LARGE = [16384, *SIZES[1:]]
"""For least times: what is shorter than a shaper's burst sometimes travels for nothing."""
TOLERANCE, TURNS = 0.10, 4
ROW, RUNS = 3, 25
"""The Intel benchmarks print means only: the least mean of so many exchanges in a row is compared, of so many rows."""

OURS = f"""
from mpi4py import MPI
from minga.fit.network.exchanges import Ends, ladder_of
from minga.fit.network.team import one_job
with one_job(MPI.COMM_WORLD) as team:
    if team is not None:
        for sample in ladder_of(team, Ends(0, 1), "mpi", {LARGE}, 8.0, 0, least=50):
            print("found", sample.size, *sample.seconds)
"""

Times = dict[int, float]


def agree(ours: Callable[[], Times], theirs: Callable[[], Times], sizes: list[int]) -> None:
    """In turns; the least of all turns are compared, as other programs may disturb either."""
    mine: Times = {}
    other: Times = {}
    for _ in range(TURNS):
        for best, found in ((mine, ours()), (other, theirs())):
            for size, seconds in found.items():
                best[size] = min(seconds, best.get(size, seconds))
        ratios = {size: mine[size] / other[size] for size in sizes}
        print({size: round(ratio, 3) for size, ratio in ratios.items()})
        if all(abs(ratio - 1) <= TOLERANCE for ratio in ratios.values()):
            return
    load = os.getloadavg()[0]
    if load > 1.5 * len(available_cores()):
        pytest.skip(f"other programs keep the cores busy (load {load:.1f}): run it when they have ended; {ratios}")
    pytest.fail(f"ours {mine}, theirs {other}")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("own_labs")
def test_tcp_agrees_with_netpipe(rights: dict[str, Any], tmp_path: Path) -> None:
    if shutil.which("NPtcp") is None:
        pytest.skip("NetPIPE is not here: apt-get install netpipe-tcp")
    with laboratory(TWO, rootless=rights["rootless"], quota=False) as cluster:
        hosts = [Host(name, address=address) for name, address in zip(cluster.names, cluster.addresses)]
        with agents(hosts, lambda host, command: cluster.command(host.name, command)) as team:

            def ours() -> Times:
                found = ladder_of(team, Ends(0, 1, cluster.addresses[1]), "tcp", SIZES, 8.0, 0)
                return {sample.size: sample.summary.median for sample in found}

            agree(ours, lambda: netpipe(cluster, tmp_path), SIZES)


def netpipe(cluster: Cluster, folder: Path) -> Times:
    """Seconds by bytes, with the sizes of ours among NetPIPE's."""
    # Both ends are told the sizes; without perturbation they are l, 3/2 l, 2 l, 3 l, ...
    options = ["-p", "0", "-l", "1024", "-u", str(SIZES[-1])]
    server = subprocess.Popen(cluster.command(1, ["NPtcp", *options]), stdout=subprocess.DEVNULL, cwd=folder)
    try:
        time.sleep(0.5)
        command = cluster.command(0, ["NPtcp", "-h", cluster.addresses[1], *options, "-o", str(folder / "np.out")])
        subprocess.run(command, check=True, capture_output=True, cwd=folder, timeout=120)
    finally:
        server.kill()
        server.wait()
    rows = [line.split() for line in (folder / "np.out").read_text().splitlines()]
    return {int(size): float(seconds) for size, _, seconds in rows}


def least_mean(seconds: list[float]) -> float:
    """Of ``ROW`` exchanges in a row."""
    count = min(ROW, len(seconds))
    return min(sum(seconds[at : at + count]) / count for at in range(len(seconds) - count + 1))


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("own_labs")
@pytest.mark.parametrize("name", ["impi", "mpich"])
def test_mpi_agrees_with_the_intel_benchmarks(rights: dict[str, Any], name: str, tmp_path: Path) -> None:
    try:
        intel, chosen = find_implementation("impi"), find_implementation(name)
    except LaunchError as error:
        pytest.skip(str(error))
    program = intel.launcher.parent / "IMB-MPI1"
    lengths = tmp_path / "lengths"
    lengths.write_text("".join(f"{size}\n" for size in LARGE))
    # The benchmark runs on MPICH's library as well, as both have one binary interface.
    found = {"LD_LIBRARY_PATH": str(chosen.library.parent)}
    command = [str(program), *["PingPong"] * RUNS, "-msglen", str(lengths), "-iter", str(ROW), "-iter_policy", "off"]
    with laboratory(TWO, rootless=rights["rootless"], quota=False) as cluster:

        def theirs() -> Times:
            job = cluster.run(command, 2, name, found, 120)
            assert job.returncode == 0, job.stdout + job.stderr
            rows = re.findall(r"^ +(\d+) +\d+ +([\d.]+) +[\d.]+$", job.stdout, re.MULTILINE)
            assert len(rows) == RUNS * len(LARGE)
            return {size: min(float(micro) * 1e-6 for n, micro in rows if int(n) == size) for size in LARGE}

        def ours() -> Times:
            job = cluster.run([sys.executable, "-c", OURS], 2, name, None, 120)
            assert job.returncode == 0, job.stdout + job.stderr
            rows = [line.split()[1:] for line in job.stdout.splitlines() if line.startswith("found ")]
            return {int(size): least_mean(list(map(float, seconds))) for size, *seconds in rows}

        agree(ours, theirs, LARGE)
