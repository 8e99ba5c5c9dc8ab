"""`minga measure --network --hosts` inside a lab, as a person runs it: all transports, each MPI library, switches."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from minga.lab.cluster import Cluster, laboratory
from minga.lab.config import Lab, LabNode
from minga.lab.launch import mpi_environment
from minga.launch.implementations import installed
from minga.plan.machine.machine import read_machine

THREE = Lab("measured", tuple(LabNode(name, 1.0, None, 100e6) for name in ("ana", "berta", "carla")), rate=100e6)
NODES = (("ana", "up"), ("dora", "down"), ("berta", "up"), ("carla", "down"))
TWO = Lab("two-switches", tuple(LabNode(name, 0.4, None, 100e6, switch) for name, switch in NODES), uplink=2e-3)
SHELL = """\
#!/bin/sh
# Called like ssh: [options] HOST COMMAND...
while :; do case $1 in -[plioF]) shift 2 ;; -*) shift ;; *) break ;; esac; done
host=$1
shift
case $host in
{nodes}
esac
"""


def shell(cluster: Cluster, folder: Path) -> Path:
    """A program that runs a command on a node, told by name or by address."""
    nodes = "\n".join(
        f'{name}|{address}) exec {shlex.join(cluster.command(name, ["/bin/sh", "-c"]))} "$*" ;;'
        for name, address in zip(cluster.names, cluster.addresses)
    )
    script = folder / "shell"
    script.write_text(SHELL.format(nodes=nodes))
    script.chmod(0o755)
    return script


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("own_labs")
def test_hosts_with_each_library(rights: dict[str, Any], tmp_path: Path) -> None:
    with laboratory(THREE, rootless=rights["rootless"], quota=False) as cluster:
        hosts = tmp_path / "hosts"
        hosts.write_text("".join(f"{n} address={a}\n" for n, a in zip(cluster.names, cluster.addresses)))
        command = [sys.executable, "-m", "minga.cli.main", "measure", "--network", "--seconds", "40"]
        files = ["-o", str(tmp_path / "lab.json"), "--html", str(tmp_path / "lab.html"), "--plot",
                 str(tmp_path / "lab.svg")]  # fmt: skip
        over = ["--hosts", str(hosts), "--shell", str(shell(cluster, tmp_path))]
        settings: dict[str, str] = {}
        for library in installed():
            settings |= mpi_environment(library)
        for key in ("MPI4PY_LIBMPI", "MINGA_MPIEXEC"):
            settings.pop(key, None)
        done = cluster.execute(0, [*command, *over, *files], env=os.environ | settings, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
    section = json.loads((tmp_path / "lab.json").read_text())["measured"]["network"]
    assert {entry["library"].split()[0] for entry in section["libraries"]} == {
        library.vendor.split()[0] for library in installed()
    }, section["unavailable"]
    for entry in section["libraries"]:
        assert entry["crossed"]["enough"], entry["library"]
        assert 1e6 < entry["fit_minimum"]["bandwidth"] < 13e6  # libraries that wait by polling may be slow on few cores
    assert {curve["transport"] for curve in section["machines"]} >= {"icmp", "udp", "tcp", "tcp-nagle", "udpbcast"}
    assert {curve["encoding"] for curve in section["machines"]} == {"none", "translated", "xdr", "pickled"}
    assert section["one_way"]["points"], section["one_way"]
    for point in section["one_way"]["points"]:  # all nodes have one clock
        assert point["there"] == pytest.approx(point["back"], rel=0.5)
    assert "MPI, ana and berta" in (tmp_path / "lab-machines.svg").read_text()
    assert "ana" in (tmp_path / "lab.html").read_text()
    assert subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, check=False).stdout == b""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("own_labs")
def test_two_switches_are_told_apart(rights: dict[str, Any], tmp_path: Path) -> None:
    with laboratory(TWO, rootless=rights["rootless"], quota=False) as cluster:
        hosts = tmp_path / "hosts"
        hosts.write_text("".join(f"{n} address={a}\n" for n, a in zip(cluster.names, cluster.addresses)))
        words = ["measure", "--network", "--seconds", "10", "-o", str(tmp_path / "lab.json")]
        over = ["--hosts", str(hosts), "--shell", str(shell(cluster, tmp_path))]
        command = [sys.executable, "-m", "minga.cli.main", *words, *over]
        done = cluster.execute(0, command, env=dict(os.environ), text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "lab.json").read_text())
    assert content["switches"]["levels"] == ["switch"]
    assert content["switches"]["groups"] == [["ana", "berta"], ["dora", "carla"]]
    machine = read_machine(tmp_path / "lab.json")
    assert machine.levels[:2] == ("switch", "node")
    far, near = (float(machine.links[f"inter-{level}"].time(0)) for level in ("switch", "node"))
    assert 1e-3 < far - near < 3e-3
    assert "level switch: 2 groups of machines (ana, berta; dora, carla)" in done.stdout
