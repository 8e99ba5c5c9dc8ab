"""Nodes and links of a lab: network namespaces, pairs of virtual interfaces, a bridge, and token buckets as line rates.

Each node has one interface, eth0, whose other end (p0, p1, ...) is in the namespace of the switch.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from minga.errors import LaunchError
from minga.lab import offloads
from minga.lab.commands import output
from minga.lab.config import ETHERNET, Lab
from minga.lab.state import State

__all__ = ["Counters", "address", "burst", "counters", "make_links", "make_namespaces", "remove_namespaces"]

NETWORK: Final = "10.77.0"

_LIMIT: Final = 150_000
"""Bytes that may queue for a line, as in a small switch; frames that do not fit are dropped."""


class Counters(NamedTuple):
    """Bytes and packets that a node has received and sent, including all headers."""

    received_bytes: int
    sent_bytes: int
    received_packets: int
    sent_packets: int


def address(node: int) -> str:
    """Return the address of a node; nodes are numbered from 0."""
    return f"{NETWORK}.{node + 1}"


def burst(rate: float, frame: int = ETHERNET) -> int:
    """Return the bytes that a token bucket lets pass at once, for a rate in bit/s and frames that carry so many bytes.

    The burst is as small as reaching the rate permits, since messages smaller than it look faster than the line, by
    burst/rate seconds. On a machine with two cores, a TCP stream reached 99.5 % of the ideal payload at 10 Mb/s with
    1600 bytes, 99.3 % at 100 Mb/s with 3200 bytes, and 79 % at 1 Gb/s with 64000 bytes.
    """
    one = frame + 100
    if rate <= 10e6:
        return one
    return max(one, 3200 if rate <= 100e6 else max(3200, min(64_000, round(64e-6 * rate))))


def make_namespaces(state: State) -> None:
    """Create the namespaces, without links. None of them may exist yet."""
    _ip(state, [f"netns add {name}" for name in state.namespaces])


def make_links(state: State) -> None:
    """Connect the nodes: create links, line rates, addresses and, unless a program forwards the frames, the bridge."""
    lab, switch = state.lab, state.namespace(None)
    bridged = not lab.in_user_space
    pairs = [
        f"link add eth0 netns {state.namespace(node)} type veth peer name p{node} netns {switch}"
        for node in range(len(lab.nodes))
    ]
    _ip(state, pairs)
    output(_offloads_off(state))
    inside = ["link set lo up"]
    if bridged:
        inside += ["link add br0 type bridge mcast_snooping 0", "link set br0 up"]
    for node in range(len(lab.nodes)):
        inside += [f"link set p{node} mtu {lab.frame} {'master br0 ' if bridged else ''}gso_max_segs 1 up"]
    _ip(state, inside, switch)
    for node in range(len(lab.nodes)):
        lines = [
            "link set lo up",
            f"address add {address(node)}/24 broadcast {NETWORK}.255 dev eth0",
            f"link set eth0 mtu {lab.frame} gso_max_segs 1 up",
            "route add 224.0.0.0/4 dev eth0",
        ]
        _ip(state, lines, state.namespace(node))
    if bridged:
        _shape(state, lab)
    if lab.socket_buffer is not None:
        _limit_buffers(state, lab.socket_buffer)


def counters(state: State) -> dict[int, Counters]:
    """Return the traffic of each node's link, from the counters of the interface at the switch's end."""
    shown = json.loads(_show(state) or "[]")
    found: dict[int, Counters] = {}
    for link in shown:
        name = link.get("ifname", "")
        if name[:1] == "p" and name[1:].isdigit():
            got, gave = link["stats64"]["rx"], link["stats64"]["tx"]
            found[int(name[1:])] = Counters(gave["bytes"], got["bytes"], gave["packets"], got["packets"])
    return dict(sorted(found.items()))


def remove_namespaces(state: State) -> None:
    """Remove those namespaces that exist; links and traffic shaping vanish with them."""
    there = [name for name in state.namespaces if state.namespace_file(name).exists()]
    if there:
        _ip(state, [f"netns delete {name}" for name in there])


def _show(state: State) -> str:
    return output([*state.prefix, "ip", "-netns", state.namespace(None), "-json", "-statistics", "link", "show"])


def _ip(state: State, lines: list[str], namespace: str | None = None, tool: str = "ip") -> None:
    """Run many commands in one process of ``ip`` or ``tc``; the error names the command that failed."""
    command = [tool, *(() if namespace is None else ("-netns", namespace)), "-batch", "-"]
    try:
        output([*state.prefix, *command], "\n".join(lines) + "\n")
    except LaunchError as error:
        if line := re.search(r"Command failed -:(\d+)", error.message):
            error.message = f"`{tool} {lines[int(line[1]) - 1]}` failed: {error.message.split('failed: ', 1)[-1]}"
        raise


def _shape(state: State, lab: Lab) -> None:
    """Attach token buckets to both ends of each link, since a switch stores and forwards frames.

    The overhead of 24 bytes per frame is preamble, checksum and inter-frame gap (IEEE 802.3); the shortest frame
    occupies 84 bytes with it.
    """
    ports = []
    for node, rate in enumerate(lab.rates):
        if rate is None:
            continue
        size = burst(rate, lab.frame)
        bucket = f"root tbf rate {round(rate)}bit burst {size} limit {_LIMIT} overhead 24 mpu 84 linklayer ethernet"
        _ip(state, [f"qdisc add dev eth0 {bucket}"], state.namespace(node), "tc")
        ports.append(f"qdisc add dev p{node} {bucket}")
    if ports:
        _ip(state, ports, state.namespace(None), "tc")


def _limit_buffers(state: State, most: int) -> None:
    """Limit the TCP buffers (minimum, default and maximum bytes), a setting of each network namespace."""
    text = f"4096 {most} {most}"
    write = " && ".join(f"echo {text} > /proc/sys/net/ipv4/{name}" for name in ("tcp_wmem", "tcp_rmem"))
    for node in range(len(state.lab.nodes)):
        output([*state.prefix, "ip", "netns", "exec", state.namespace(node), "/bin/sh", "-c", write])


def _offloads_off(state: State) -> list[str]:
    names: Mapping[str, list[str]] = {
        state.namespace(None): [f"p{node}" for node in range(len(state.lab.nodes))],
        **{state.namespace(node): ["eth0"] for node in range(len(state.lab.nodes))},
    }
    words = [f"{name}:{','.join(devices)}" for name, devices in names.items()]
    return [*state.prefix, sys.executable, "-I", str(Path(offloads.__file__)), *words]
