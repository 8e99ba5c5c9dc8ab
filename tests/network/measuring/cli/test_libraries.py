"""Each MPI library that is installed, measured by ranks of its own; and why one cannot be."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from minga.launch.hosts import Host
from minga.launch.implementations import Implementation, find_implementation
from minga.network.measuring.cli import libraries
from minga.network.measuring.cli.libraries import add_libraries, host_command, measured_libraries

HOSTS = [Host("ana", address="10.0.0.1"), Host("berta"), Host("carla")]


def library(name: str, launcher: Path = Path("/opt/mpi/bin/mpiexec")) -> Implementation:
    return Implementation(name, launcher, Path("/opt/mpi/lib/libmpi.so"))


def test_a_rank_on_each_of_the_first_two_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minga.launch.on_hosts.own_address", lambda hosts, shell: None)
    program = ["python", "-m", "x"]
    each = ["-n", "1", "-wdir", "/", *program]
    mpich = host_command(library("mpich"), "my-ssh", HOSTS, program, tmp_path)
    assert mpich[:5] == ["/opt/mpi/bin/mpiexec", "-launcher", "ssh", "-launcher-exec", str(tmp_path / "shell")]
    assert "exec my-ssh" in (tmp_path / "shell").read_text()
    assert mpich[5:] == ["-hosts", "ana:1,berta:1", *each, ":", *each]
    openmpi = host_command(library("openmpi"), "my-ssh", HOSTS, program, tmp_path)
    assert openmpi[1:4] == ["--prtemca", "plm_ssh_agent", str(tmp_path / "shell")]
    assert openmpi.count("MPI4PY_LIBMPI") == 2
    intel = host_command(library("impi"), "my-ssh", HOSTS, program, tmp_path)
    assert Path(intel[intel.index("-machinefile") + 1]).read_text() == "ana:1\nberta:1\n"


def test_a_library_that_fails_is_left_out_with_its_last_words(tmp_path: Path) -> None:
    failing = tmp_path / "mpiexec"
    failing.write_text("#!/bin/sh\necho first >&2; echo 'no such fabric' >&2; exit 7\n")
    failing.chmod(failing.stat().st_mode | stat.S_IXUSR)
    idle = tmp_path / "idle"
    idle.write_text("#!/bin/sh\nexit 0\n")
    idle.chmod(idle.stat().st_mode | stat.S_IXUSR)
    three = [library("mpich", failing), library("openmpi", tmp_path / "absent"), library("impi", idle)]
    found, missing = measured_libraries(three, 0.1, HOSTS, "my-ssh")
    assert found == []
    assert missing["MPICH"] == "status 7: no such fabric"
    assert "No such file" in missing["Open MPI"]
    assert missing["Intel MPI"] == "it left no result"


def test_rank_0_may_be_on_another_machine_and_prints_what_it_found(tmp_path: Path) -> None:
    launcher = tmp_path / "mpiexec"
    launcher.write_text('#!/bin/sh\necho Welcome to ana\necho \'minga-measured {"library": "MPICH 5"}\'\n')
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    assert measured_libraries([library("mpich", launcher)], 0.1, HOSTS, "my-ssh") == ([{"library": "MPICH 5"}], {})


def test_a_library_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = tmp_path / "mpiexec"
    hanging.write_text("#!/bin/sh\nsleep 1000\n")
    hanging.chmod(hanging.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(libraries, "_PATIENCE", -1.4)  # less than no time
    assert measured_libraries([library("mpich", hanging)], 0.1)[1] == {
        "MPICH": "ranks that were started for it did not end"
    }


def test_what_takes_another_way_than_the_interface_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"library": "MPICH 5", "crossed": {"interface": "eth0", "sent": 3, "payload": 10, "enough": False}}
    monkeypatch.setattr(libraries, "installed", lambda: [library("mpich"), library("openmpi")])
    monkeypatch.setattr(libraries, "measured_libraries", lambda *_: ([entry], {"Open MPI": "why"}))
    section: dict[str, Any] = {"libraries": [], "unavailable": {}, "advice": []}
    add_libraries(section, 1.0, lambda part, what: None)
    assert section["libraries"] == [entry]
    assert section["unavailable"] == {"Open MPI": "why"}
    assert "MPICH 5 did not cross the interface eth0" in section["advice"][0]
    monkeypatch.setattr(libraries, "installed", lambda: [library("mpich")])
    alone: dict[str, Any] = {"libraries": [], "unavailable": {}, "advice": []}
    add_libraries(alone, 1.0, lambda part, what: None)  # what the ranks on this machine used already
    assert alone["libraries"] == []


def test_the_way_to_the_second_host_is_looked_at_also_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[dict[str, Any]] = []
    monkeypatch.setattr(libraries, "_run", lambda command, *_: orders.append(json.loads(command[-1])) or "ended")
    for hosts in (HOSTS, [HOSTS[1], HOSTS[0]], []):
        measured_libraries([library("mpich")], 0.1, hosts, "my-ssh")
    assert [order["address"] for order in orders] == ["berta", "10.0.0.1", None]


@pytest.mark.slow
@pytest.mark.mpi
def test_ranks_that_are_started_for_a_library() -> None:
    found, missing = measured_libraries([find_implementation("mpich")], 0.3)
    assert missing == {}
    (entry,) = found
    assert entry["library"].startswith("MPICH")
    assert (entry["level"], entry["between"], entry["crossed"]) == (1, "one node", None)
    assert 0 < entry["fit_median"]["zero"] < 0.1
