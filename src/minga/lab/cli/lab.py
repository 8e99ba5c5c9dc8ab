"""The command ``minga lab``: build, inspect, use and remove emulated clusters on one machine."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minga.errors import CaseError, LaunchError, suggest
from minga.lab.cluster import Cluster, existing, find, laboratory, remove_stale, unreadable, up
from minga.lab.config import Lab, labs, read_lab
from minga.lab.launch import check_memory
from minga.launch.processes import end
from minga.launch.signals import interruptible

__all__ = ["RunRequest", "describe", "down", "listing", "run", "start", "status"]

_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options of ``minga lab run``. With ``node`` the program is started once on that node, without MPI."""

    target: str
    program: tuple[str, ...]
    ranks: int | None = None
    per_node: int | None = None
    mpi: str = "mpich"
    mpi_home: Path | None = None
    node: str | None = None
    keep: bool = False
    quota: bool = True


def start(target: str, quota: bool) -> str:
    """Build a lab, and return its description."""
    cluster = up(read_lab(target), quota=quota)
    return describe(cluster.status())


def down(targets: Sequence[str], everything: bool) -> str:
    """Remove the named labs, or all labs."""
    chosen = existing() if everything else [_existing(target) for target in targets]
    if not (targets or everything):
        raise CaseError("no lab was named", remedy="name one of `minga lab list`, or remove all of them: --all")
    for cluster in chosen:
        cluster.down()
    for error in unreadable().values() if everything else ():
        raise error
    return "\n".join(f"{cluster.name} is removed" for cluster in chosen) or "there is no lab"


def status(target: str | None) -> list[dict[str, Any]]:
    """Return the status of the named lab, or of all labs; report labs that cannot be read on standard error."""
    for error in () if target else unreadable().values():
        sys.stderr.write(f"minga lab: {error}\n")
    return [cluster.status() for cluster in ([_existing(target)] if target else existing())]


def listing() -> str:
    """Return a list of the labs that are up and those that ship with minga, after removing stale labs."""
    removed = [f"{name} was left behind and is removed" for name in remove_stale()]
    rows = [(c.name, c.fault() or "up", f"{len(c.names)} nodes") for c in existing()]
    rows += [(name, f"unreadable; see `minga lab status {name}`", "? nodes") for name in unreadable()]
    width = max((len(row[0]) for row in rows), default=0)
    here = [f"{name:{width}}  {count:>9}  {state}" for name, state, count in rows] or ["no lab is up"]
    return "\n".join([*removed, *here, f"shipped: {', '.join(labs())}"])


def run(request: RunRequest) -> int:
    """Run a program on the nodes of a lab, which is built for it unless it is up, and return its exit status."""
    if not request.program:
        raise CaseError("no program was named", remedy=f"write it after --: minga lab run {request.target} -- hostname")
    lab = read_lab(request.target)
    with interruptible(), _cluster(lab, request) as cluster:
        before, ran = cluster.counters(), True
        try:
            status = _carry_out(cluster, request)
        except (CaseError, LaunchError):
            ran = False
            raise
        finally:
            if ran:
                sys.stderr.write(f"minga lab: {_crossed(cluster, before)}\n")
    return status if status >= 0 else 128 - status  # as in shells: a program ended by signal 9 has status 137


def describe(state: Mapping[str, Any]) -> str:
    """Return the status of a lab as text for the terminal."""
    scale = "" if state["scale"] == 1.0 else f", shares times {state['scale']:.3g} to fit {state['cores']:.0f} cores"
    rights = ("" if state["root"] else ", without root") + ("" if state["quota"] else ", without quotas")
    lines = [f"{state['name']}: {state['state']}, {state['wiring']}{scale}{rights}"]
    table: list[tuple[str, ...]] = [
        ("node", "address", "cores", "memory", "rate", "processes", "sent", "received", "waited for CPU")
    ]
    table += [_row(node) for node in state["nodes"]]
    widths = [max(map(len, column)) for column in zip(*table)]
    for row in table:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        lines.append("  " + "  ".join(cells).rstrip())
    if state["hub"] is not None:
        counts = ("frames", "lost", "duplicated", "reordered", "overflowed", "refused")
        lines.append(
            "  frames: " + ", ".join(f"{state['hub'][name]} {name}" for name in counts if name in state["hub"])
        )
    return "\n".join(lines).replace("frames: ", "program between the nodes: ")


def _row(node: Mapping[str, Any]) -> tuple[str, ...]:
    def text(key: str, form: Any) -> str:
        return "-" if node.get(key) is None else form(node[key])

    return (
        node["name"],
        node["address"],
        text("cores", lambda cores: f"{cores:.3f}"),
        text("memory", lambda size: _short(size, "B")),
        text("rate", lambda rate: _short(rate, "b/s")),
        str(node["processes"]),
        text("sent_bytes", lambda size: _short(size, "B")),
        text("received_bytes", lambda size: _short(size, "B")),
        text("throttled_seconds", lambda seconds: f"{seconds:.1f} s"),
    )


def _short(value: float, unit: str) -> str:
    for prefix, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.0f} {unit}"


def _existing(target: str) -> Cluster:
    """Return the lab that is up under a name, or that was built from a file; raise CaseError if there is none."""
    cluster = find(target) if "/" not in target else None
    if cluster is None and (Path(target).is_file() or target in labs()):
        cluster = find(read_lab(target))
    if cluster is None:
        known = [other.name for other in existing()]
        raise CaseError(
            f"the lab {target!r} is not up",
            suggestion=suggest(target, known),
            remedy=f"build it: minga lab up {target}" if not known else f"labs that are up: {', '.join(known)}",
        )
    return cluster


@contextlib.contextmanager
def _cluster(lab: Lab, request: RunRequest) -> Iterator[Cluster]:
    there = find(lab)
    if there is not None and there.fault() is None:
        if there.lab != lab:
            raise LaunchError(
                f"the lab {lab.name} is up, but was built from another description",
                remedy=f"remove it first: minga lab down {lab.name}",
            )
        yield there
    elif request.keep:
        yield up(lab, quota=request.quota)
    else:
        with laboratory(lab, quota=request.quota) as cluster:
            yield cluster


def _carry_out(cluster: Cluster, request: RunRequest) -> int:
    if request.node is not None:
        killed = cluster.killed_for_memory()
        status = _foreground(cluster, request.node, request.program)
        check_memory(cluster, killed, status)
        return status
    done = cluster.run(
        request.program,
        request.ranks,
        request.mpi,
        per_node=request.per_node,
        home=request.mpi_home,
        capture=False,
    )
    return done.returncode


def _foreground(cluster: Cluster, node: str, program: Sequence[str]) -> int:
    """Run a program on this terminal; Ctrl-C also reaches the program, which has some time to end by itself."""
    with subprocess.Popen(cluster.command(node, program)) as child:
        try:
            return child.wait()
        except KeyboardInterrupt as interrupt:
            if not interrupt.args:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(_PATIENCE)
            end(lambda: _of_this_job(cluster))
            raise


def _of_this_job(cluster: Cluster) -> list[int]:
    """Return the processes in the lab that belong to the process group of this process, which has started them."""
    found = []
    for pid in set().union(*cluster.processes().values()):
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(pid) == os.getpgrp():
                found.append(pid)
    return found


def _crossed(cluster: Cluster, before: Mapping[int, Any]) -> str:
    """Describe the traffic over the links since ``before``, which shows that programs used them."""
    after = cluster.counters()
    sent = {node: counts.sent_bytes - before[node].sent_bytes for node, counts in after.items() if node in before}
    words = ", ".join(f"{cluster.names[node]} {_short(size, 'B')}" for node, size in sent.items() if size)
    return f"sent over the links: {words or 'nothing'}"
