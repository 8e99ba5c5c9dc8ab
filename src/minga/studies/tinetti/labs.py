"""Emulated networks of the experiments after Tinetti, and the execution of programs on them.

A hub of 10 Mb/s is the laboratory of the study; switches of 10, 100 and 1000 Mb/s represent later networks. Everything
is emulated (:mod:`minga.lab`): real programs and protocols, wires in software.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from minga.errors import LaunchError, RunError
from minga.lab.cluster import Cluster, lab_rights
from minga.lab.config import Lab, LabNode
from minga.launch.hosts import Host
from minga.network.measuring.exchanges import Ends, sample_message_sizes
from minga.network.measuring.host_team import HostTeam, agents
from minga.network.measuring.transports import Unavailable

__all__ = [
    "MIB",
    "alike",
    "check_quotas",
    "hosts_of",
    "hub",
    "one_way",
    "order",
    "payload_rate",
    "switch",
    "team_of",
]

MIB: Final = float(1 << 20)
"""MB as defined in the study, bytes."""

MACHINES: Final = (("purmamarca", 0.4), ("cetadfomec", 0.3), ("sofia", 0.25), ("tilcara", 0.12))
"""Names and order of speed are those of the study; fractions of a core leave room for the hub."""

_LATENCY: Final = 0.2e-3
_FRAME: Final = 1538
"""Length of the longest frame on the wire in bytes, with preamble, header, checksum and gap."""
_PAYLOAD: Final = {"tcp": 1448, "udp": 1472}
"""Bytes of a program's data in that frame, with TCP's time stamps."""


def check_quotas() -> None:
    """Raise LaunchError if no lab with CPU quotas and the kernel's TCP settings can be built here."""
    rights = lab_rights()
    if rights.rootless or not rights.version:
        raise LaunchError(
            "these experiments need labs with CPU quotas, and the kernel's TCP settings in them: only root has both",
            remedy="run it as root, on Linux with control groups; see docs/lab.md",
        )


def hub(rate: float = 10e6, nodes: Sequence[LabNode] | None = None, *, latency: float = _LATENCY) -> Lab:
    """Return a lab with one medium shared by all nodes."""
    return Lab("hub", tuple(nodes or _machines()), wiring="hub", rate=rate, latency=latency)


def switch(
    rate: float,
    nodes: Sequence[LabNode] | None = None,
    *,
    latency: float = 0.0,
    socket_buffer: int | None = None,
) -> Lab:
    """Return a lab with a separate line for each node and direction."""
    name = f"switch-{rate / 1e6:g}"
    return Lab(name, tuple(nodes or _machines()), rate=rate, latency=latency, socket_buffer=socket_buffer)


def alike(count: int, share: float) -> tuple[LabNode, ...]:
    """Return identical nodes."""
    return tuple(LabNode(f"node-{number}", share) for number in range(count))


def _machines() -> tuple[LabNode, ...]:
    return tuple(LabNode(name, share) for name, share in MACHINES)


def payload_rate(rate: float, protocol: str) -> float:
    """Return the largest payload, bytes/s, that a link of ``rate`` bit/s can carry over "tcp" or "udp"."""
    return rate / 8 * _PAYLOAD[protocol] / _FRAME


def order(
    cluster: Cluster,
    content: Mapping[str, Any],
    *,
    mpi: str,
    ranks: int | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = 900.0,
    program: str = "minga.studies.tinetti.ranks",
) -> Any:
    """Run an order on ranks on the nodes.

    Parameters
    ----------
    cluster
        The lab.
    content
        The order, passed as JSON.
    mpi
        Name of the MPI implementation.
    ranks
        Number of ranks.
    environment
        Additional environment variables.
    timeout
        Time limit, s; None for no limit.
    program
        Module that each rank runs.

    Returns
    -------
    object
        The last line printed by rank 0, decoded from JSON.

    Raises
    ------
    RunError
        If the ranks fail.
    """
    command = [sys.executable, "-m", program, json.dumps(content)]
    done = cluster.run(command, ranks=ranks, mpi=mpi, environment=environment, timeout=timeout)
    lines = (done.stdout or "").strip().splitlines()
    if done.returncode != 0 or not lines:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise RunError(f"the ranks on {cluster.lab.name} ended with status {done.returncode}:\n{said}")
    return json.loads(lines[-1])


def hosts_of(cluster: Cluster) -> list[Host]:
    """Return the nodes as hosts on which agents can be started."""
    return [Host(name, address=address) for name, address in zip(cluster.names, cluster.addresses, strict=True)]


def team_of(cluster: Cluster) -> Any:
    """Return a context manager of agents on all nodes, without MPI."""
    return agents(hosts_of(cluster), lambda host, command: cluster.command(host.name, command), patience=60.0)


def one_way(
    team: HostTeam,
    cluster: Cluster,
    node: int,
    transport: str,
    sizes: Sequence[int],
    budget: float,
    *,
    least: int = 3,
) -> list[float | None]:
    """Return the shortest times, s, from the first node to another by size; None: no answer, or size too large."""
    try:
        samples = sample_message_sizes(
            team, Ends(0, node, cluster.addresses[node]), transport, sizes, budget, 0, least=least
        )
    except Unavailable:
        return [None] * len(sizes)
    arrived = {sample.size: [spent for spent in sample.seconds if not math.isnan(spent)] for sample in samples}
    return [min(arrived[size]) if arrived.get(size) else None for size in sizes]
