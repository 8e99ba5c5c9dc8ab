"""The command ``minga measure``: measure this machine, a list of hosts, or a job, and write a machine file."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from minga.cli.outputs import check_output
from minga.errors import CaseError, MingaError
from minga.launch.launcher import Job, surrounding_job, world
from minga.network.measuring.cli.display import MeasureDisplay, Stage, measure_display
from minga.network.measuring.cli.libraries import add_libraries

if TYPE_CHECKING:
    from minga.engine.comm import Comm
    from minga.engine.model import Model
    from minga.launch.hosts import Host
    from minga.plan.links import Links
    from minga.plan.machine.machine import Machine
    from minga.plan.machine.survey import Kernel

__all__ = ["MeasureRequest", "measure"]

STANDARD: Final = ("laplace", "life", "heat")
"""Cases whose kernels are timed by default."""

_KERNEL_SHARE: Final = 0.6
"""Share of the time for kernels; the rest is for messages."""
_LIBRARY_SHARE: Final = 0.15
"""Share of the time for messages that is used to compare MPI libraries."""
_MOST_RANKS: Final = 16
"""Most ranks that are started to time messages inside this machine."""
_MOST_SECONDS: Final = 86_400.0
"""Longest duration of a measurement: one day."""


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """The options of the command line."""

    cases: Sequence[str] = field(default=())
    hosts: Path | None = None
    network: bool | None = None
    """True to measure only the network, False to measure all but the network, None to measure both."""
    seconds: float = 60.0
    out: Path | None = None
    plot: Path | None = None
    shell: str = "ssh"
    """Program that runs a command on a host, as ``ssh`` does: SHELL HOST COMMAND."""
    name: str = ""
    html: Path | None = None
    force: bool = False

    @property
    def shares(self) -> tuple[float, float]:
        """Seconds for nodes and seconds for messages."""
        if self.network is not None:
            return (0.0, self.seconds) if self.network else (self.seconds, 0.0)
        return _KERNEL_SHARE * self.seconds, (1 - _KERNEL_SHARE) * self.seconds


def measure(request: MeasureRequest) -> Machine | None:
    """Measure a machine, and return it on rank 0, None on the other ranks of a job.

    The machine is also written to ``request.out``, unless there was an error.

    Raises
    ------
    CaseError
        If something cannot be measured or written.
    LaunchError, RunError
        If hosts cannot be reached or are lost.
    """
    _check(request)
    kernels = [_kernel(case) for case in request.cases or STANDARD]
    job = surrounding_job()
    began = time.time()
    before = _load()
    if job is not None and job.size > 1:
        content = _in_job(request, kernels, job)
        if content is None:
            return None
    else:
        with measure_display() as display:
            content = _on_hosts(request, display) if request.hosts else _here(request, kernels, display)
    content["measured"] = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        "seconds": round(time.time() - began, 3),
        "minga": importlib.metadata.version("minga"),
        "load": [before, _load()],
        **content["measured"],
    }
    return _written(request, content)


def _check(request: MeasureRequest) -> None:
    if not 0 < request.seconds <= _MOST_SECONDS:
        raise CaseError(
            f"{request.seconds:g} seconds is out of range", key="--seconds", remedy="give some seconds: --seconds 60"
        )
    check_output(request.out, "-o", force=request.force)
    check_output(request.plot, "--plot", (".svg", ".png"), force=request.force)
    check_output(request.html, "--html", force=request.force)
    if request.html is not None and request.network is False:
        raise CaseError(
            "there is no report on a network that is not measured",
            key="--html",
            remedy="leave --no-network or --html out",
        )
    if request.cases and request.network:
        raise CaseError(
            f"kernels of {', '.join(request.cases)} are not timed with --network, which measures only messages",
            key="--case",
            remedy="leave --network out to time both, or leave --case out",
        )
    if request.hosts is not None and request.network is False:
        raise _without_links("--hosts")
    if request.hosts is not None and surrounding_job() is not None:
        raise CaseError(
            "--hosts cannot be used inside a job",
            key="--hosts",
            remedy="leave --hosts out: the hosts of the job are measured",
        )


def _without_links(key: str) -> CaseError:
    return CaseError(
        "a plan for several nodes needs measurements of the network between them",
        key=key,
        remedy="leave --no-network out",
    )


def _written(request: MeasureRequest, content: Mapping[str, Any]) -> Machine:
    from minga.plan.machine.machine_file import machine_of

    machine = machine_of(dict(content))
    if request.plot is not None:
        from minga.network.pages.machine_plot import draw_machine

        draw_machine(machine, request.plot)
    if request.html is not None and machine.measured.get("network"):
        from minga.network.pages.network_page import write_network_page

        write_network_page(machine, request.html)
    if request.out is not None:
        machine.write(request.out)
    return machine


# This machine --------------------------------------------------------------------------------------------------------
def _here(request: MeasureRequest, kernels: Sequence[Kernel], display: MeasureDisplay) -> dict[str, Any]:
    from minga.plan.machine.survey import survey
    from minga.plan.topology import read_tree

    for_nodes, for_network = request.shares
    nodes = survey(kernels if for_nodes else (), None, None, for_nodes, display.stage("nodes"), bandwidth=for_nodes > 0)
    assert nodes is not None  # on a single rank
    links: dict[str, Any] = {}
    measured: dict[str, Any] = {}
    if for_network:
        section, why = _inside((1 - _LIBRARY_SHARE) * for_network, len(read_tree()), display)
        if section is not None:
            add_libraries(section, _LIBRARY_SHARE * for_network, display.stage("libraries"))
        measured = {"network": section} if section is not None else {"network_missing": why}
        links = _links(section, section["levels"])[0] if section is not None else {}
        if why:
            display.note(f"messages inside this machine were not timed: {why}")
    return _content(request, nodes, links, "switch", measured)


def _inside(seconds: float, cores: int, display: MeasureDisplay) -> tuple[dict[str, Any] | None, str]:
    """Start ranks that measure messages inside this machine, and return the section, or None and the reason."""
    import subprocess
    import tempfile
    import threading

    from minga.launch.jobs import running_job
    from minga.launch.launcher import find_launcher

    if cores < 2:
        return None, "it has one core"
    try:
        launcher = find_launcher()
    except MingaError as error:
        return None, error.message
    told = display.stage("network")
    told(0.0, "messages inside this machine")
    with tempfile.TemporaryDirectory(prefix="minga-measure-") as folder, tempfile.TemporaryFile("w+") as errors:
        out = Path(folder, "section.json")
        order = json.dumps({"seconds": seconds, "out": str(out)})
        ranks = launcher.command(min(cores, _MOST_RANKS))
        command = [*ranks, sys.executable, "-m", "minga.network.measuring.cli.measure", order]
        try:
            with running_job(command, launcher.environment(), stdout=subprocess.PIPE, stderr=errors) as job:
                assert job.stdout is not None
                threading.Thread(target=_listen, args=(job.stdout, told), daemon=True).start()
                job.wait(10 * seconds + 120)
        except subprocess.TimeoutExpired:
            return None, "ranks that were started for it did not end"
        if job.returncode or not out.exists():
            errors.seek(0)
            last = "".join(f": {line}" for line in errors.read().strip().splitlines()[-1:])
            return None, f"ranks that were started for it ended with status {job.returncode}{last}"
        section: dict[str, Any] = json.loads(out.read_text())
        return section, ""


def _listen(lines: Iterable[str], told: Stage) -> None:
    """Report the progress of the ranks, which rank 0 prints as lines of JSON."""
    for line in lines:
        with contextlib.suppress(ValueError):
            part, what = json.loads(line)
            told(part, what)


def rank_main(arguments: Sequence[str]) -> int:
    """Run as one of the ranks that time messages inside this machine, with the order as the argument of this module."""
    from minga.launch.events import silence_stdout
    from minga.launch.rank_end import end_in_error

    order = json.loads(arguments[0])
    stream = os.fdopen(os.dup(1), "w")
    silence_stdout()

    def told(part: float, what: str) -> None:
        with contextlib.suppress(OSError):  # the process that started this one may be gone
            print(json.dumps([part, what]), file=stream, flush=True)

    job = surrounding_job()
    everyone = world(job, job.size if job else 1)
    try:
        comm, section = _measured_job(float(order["seconds"]), told)
        if comm.rank == 0:
            Path(order["out"]).write_text(json.dumps(section))
    except BaseException as error:
        end_in_error(error, everyone)
    return 0


def _measured_job(seconds: float, told: Stage | None) -> tuple[Comm, dict[str, Any]]:
    from minga.engine.comm import MPIComm
    from minga.engine.pin import local_place, pin
    from minga.network.measuring.measure import measure_job
    from minga.plan.topology import seats_of

    comm = MPIComm()
    pin(*local_place(comm.rank, comm.size), 1)
    seats = seats_of(comm, {})  # switches between nodes are inferred from the measurement, on any system
    section = measure_job(comm.communicator, seconds, told, seats=seats, transports=("mpi", "tcp", "udp", "icmp"))
    return comm, {**section, "levels": list(seats.levels)}


# A job ---------------------------------------------------------------------------------------------------------------
def _in_job(request: MeasureRequest, kernels: Sequence[Kernel], job: Job) -> dict[str, Any] | None:
    from minga.launch.rank_end import end_in_error

    everyone = world(job, job.size)
    try:
        if everyone.rank != 0:
            return _job_content(request, kernels, None)
        with measure_display() as display:
            return _job_content(request, kernels, display)
    except BaseException as error:
        end_in_error(error, everyone)


def _job_content(
    request: MeasureRequest, kernels: Sequence[Kernel], display: MeasureDisplay | None
) -> dict[str, Any] | None:
    from minga.engine.comm import MPIComm
    from minga.engine.pin import local_place, pin
    from minga.plan.machine.survey import cpus_of_node, survey

    for_nodes, for_network = request.shares
    told = display.stage("nodes") if display is not None else None
    comm = MPIComm()
    cpus = cpus_of_node(comm)  # before this rank is pinned to one of them
    pin(*local_place(comm.rank, comm.size), 1)
    if not for_network and len(set(comm.bcast(comm.gather(comm.node)))) > 1:
        raise _without_links("--no-network")
    nodes = survey(kernels if for_nodes else (), comm, None, for_nodes, told, bandwidth=for_nodes > 0, cpus=cpus)
    links: dict[str, Any] = {}
    measured: dict[str, Any] = {}
    medium = "switch"
    own: dict[int, dict[str, Any]] = {}
    if for_network:
        _, section = _measured_job(for_network, display.stage("network") if display is not None else None)
        links, medium, own = _links(section, section["levels"])
        measured = {"network": section}
    if nodes is None:
        return None
    for number, link in own.items():
        nodes[number]["link"] = link
    if display is not None:
        _note_idle_cores(comm.size, nodes, display)
    return _content(request, nodes, links, medium, measured)


def _note_idle_cores(ranks: int, nodes: Sequence[Mapping[str, Any]], display: MeasureDisplay) -> None:
    cores = sum(core_count(node["topology"]["groups"]) for node in nodes)
    if ranks < cores:
        display.note(
            f"{ranks} ranks measured {cores} cores: speeds and bandwidths hold with the other cores idle; start one "
            "rank per core to measure how cores slow each other down"
        )


def core_count(groups: Any) -> int:
    """Return the number of cores in the nested lists of a topology."""
    return int(groups) if isinstance(groups, int) else sum(map(core_count, groups))


# Hosts ---------------------------------------------------------------------------------------------------------------
def _on_hosts(request: MeasureRequest, display: MeasureDisplay) -> dict[str, Any]:
    from minga.launch.hosts import shell_launcher
    from minga.launch.hosts_file import read_hosts
    from minga.network.measuring.cli.remote import measure_nodes
    from minga.network.measuring.measure import measure_hosts

    assert request.hosts is not None
    hosts = read_hosts(request.hosts)
    launcher = shell_launcher(request.shell)
    for_nodes, for_network = request.shares
    nodes = _bare_nodes(hosts)
    if for_nodes:
        display.stage("nodes")(0.0, f"kernels on {len(hosts)} hosts at once")
        nodes = measure_nodes(hosts, launcher, request.cases or STANDARD, for_nodes)
    links: dict[str, Any] = {}
    measured: dict[str, Any] = {}
    medium = "switch"
    own: dict[int, dict[str, Any]] = {}
    if for_network:
        told = display.stage("network")
        section = measure_hosts(hosts, launcher, (1 - _LIBRARY_SHARE) * for_network, told)
        if all(member["mpi"] for member in section["members"]):
            add_libraries(section, _LIBRARY_SHARE * for_network, told, hosts, request.shell)
        links, medium, own = _links(section, ("node", "core"))
        measured = {"network": section}
    for number, link in own.items():
        nodes[number]["link"] = link
    return _content(request, nodes, links, medium, measured)


def _bare_nodes(hosts: Sequence[Host]) -> list[dict[str, Any]]:
    return [{"name": host.name, "hosts": [host.name], "cores": host.ranks} for host in hosts]


# The machine file ----------------------------------------------------------------------------------------------------
def _links(section: Mapping[str, Any], levels: Sequence[str]) -> tuple[dict[str, Any], str, dict[int, dict[str, Any]]]:
    """Return `links` and `medium` of a machine file from the measurements, and the links of single nodes."""
    from minga.network.measuring.section import links_from
    from minga.network.measuring.switches import level_links
    from minga.plan.machine.survey import link_settings, links_entry

    try:
        links: Links = links_from(section, len(levels))
    except ValueError:
        return {}, "switch", {}
    timed = {int(entry["level"]) for entry in section["links"]}
    own = {number: link_settings(link) for number, link in links.nodes.items()}
    between = {name: link_settings(link) for name, link in level_links(section, links.levels[0]).items()}
    return {**links_entry(links, levels, timed), **between}, "hub" if links.shared else "switch", own


def _content(
    request: MeasureRequest, nodes: Sequence[dict[str, Any]], links: Mapping[str, Any], medium: str,
    measured: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    from minga.network.measuring.switches import switches_entry
    from minga.plan.machine.survey import document

    alone = {node["name"]: node.pop("alone") for node in nodes if node.get("alone")}
    for node in nodes:
        node.pop("alone", None)
    _name_apart(nodes)
    name = request.name or (platform.node() if len(nodes) == 1 else f"{len(nodes)} hosts")
    content = document(name, nodes, links, medium, {**({"alone": alone} if alone else {}), **measured})
    return {**content, **switches_entry(measured.get("network", {}), nodes)}


def _name_apart(nodes: Sequence[dict[str, Any]]) -> None:
    """Add numbers to the names of nodes with equal names, as containers may have: ranks find their node by its name."""
    alike: dict[str, int] = {}
    for node in nodes:
        count = alike[node["name"]] = alike.get(node["name"], 0) + 1
        if count > 1:
            node["name"] = f"{node['name']}-{count}"
            node["hosts"] = [node["name"]]


def _kernel(target: str) -> Kernel:
    """Return the kernels of a case at any size, on a roughly cubic grid with the case's number of axes.

    Raises
    ------
    CaseError
        If there is no such case.
    """
    from minga.cli.case import find_source, read_case
    from minga.plan.machine.survey import Kernel

    source = find_source(target)
    own = read_case(source, ["run.steps=1"]).model
    ndim = own.grid.ndim

    def build(cells: float) -> Model:
        side = max(64, round(cells ** (1 / ndim) / 64) * 64)
        try:
            return read_case(source, ["run.steps=1", f"grid.shape={[side] * ndim}"]).model
        except MingaError:
            return own  # the initial values have a fixed size

    return Kernel(source.name, build)


def _load() -> list[float] | None:
    try:
        return [round(number, 2) for number in os.getloadavg()]
    except OSError:
        return None


def summary(machine: Machine, out: Path | None) -> str:
    """Describe the measured machine, and the file if one was written."""
    from minga.network.measuring.cli.display import machine_text

    text = machine_text(machine)
    return text if out is None else f"{text}\nwritten to {out}; plan with it: minga plan CASE --machine {out}"


if __name__ == "__main__":
    sys.exit(rank_main(sys.argv[1:]))
