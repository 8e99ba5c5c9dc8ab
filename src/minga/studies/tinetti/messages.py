"""Messages between two machines as in Figs. C.6 to C.17 of the study: PVM's routes and encodings, ping, anomalies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from minga.errors import LaunchError
from minga.lab.cluster import laboratory
from minga.network.measuring import measure_hosts
from minga.studies.experiments import Bench, left_out
from minga.studies.figures import panel
from minga.studies.tinetti.labs import MIB, hosts_of, hub, one_way, payload_rate, team_of
from minga.studies.tinetti.pvm import Pvm, check_pvm, virtual_machine

__all__ = ["anomalies", "daemon_translated", "daemon_xdr", "direct_translated", "direct_xdr", "ping"]

Result = dict[str, Any]

HUB: Final = 10e6
SIZES: Final = (8, 96, 1000, 60_000, 1_000_000)
"""Sizes of the study; doubles fill 96 of its 100 bytes. Ten million bytes are left to :mod:`.memory`."""
PING: Final = (56, 100, 1000, 8000, 30_000, 60_000)
WIRE: Final = HUB / 8 / MIB
_LARGE: Final = 60_000
FAR: Final = 1
"""Number of the node that answers."""


def _rates(sizes: Sequence[int], seconds: Sequence[float | None]) -> list[float | None]:
    """Return MB/s, with MB of 2**20 bytes as in the study."""
    return [None if not spent else size / spent / MIB for size, spent in zip(sizes, seconds, strict=True)]


def _both(
    sizes: Sequence[int],
    seconds: Mapping[str, Sequence[float | None]],
    rate: float = HUB,
    bands: Mapping[str, tuple[float, float]] | None = None,
    time_bands: Mapping[str, tuple[float, float]] | None = None,
) -> list[dict[str, Any]]:
    """Return panels of time and MB/s over size, as in the study."""
    milliseconds = {name: [None if t is None else 1e3 * t for t in values] for name, values in seconds.items()}
    speeds = {name: _rates(sizes, values) for name, values in seconds.items()}
    wire = {f"wire, {rate / 8 / MIB:.2f} MB/s": rate / 8 / MIB}
    return [
        panel(sizes, milliseconds, "bytes", "ms one way", logarithmic="xy", bands=time_bands),
        panel(sizes, speeds, "bytes", "MB/s (2^20 bytes)", logarithmic="x", lines=wire, bands=bands),
    ]


# PVM: Figs. C.6 to C.13 -----------------------------------------------------------------------------------------------
def _pvm(bench: Bench) -> dict[str, Any]:
    """Return the shortest times by route, encoding and size on the hub, or the reason why there are none."""
    try:
        check_pvm()
    except LaunchError as error:
        return {"left out": left_out(error)}

    def measure() -> dict[str, Any]:
        sizes = SIZES[:4] if bench.quick else SIZES
        rounds = {8: 10, 96: 10, 1000: 10, 60_000: 4, 1_000_000: 2}
        found: dict[str, Any] = {"sizes": list(sizes)}
        with laboratory(hub()) as cluster:
            with virtual_machine(cluster) as pvm:
                times = pvm.pingpong([_LARGE], route="daemon", encoding="xdr", node=FAR, rounds=rounds, warm=0)
                found["fresh"] = min(times[_LARGE])
            with virtual_machine(cluster) as pvm:
                _all_ways(bench, pvm, found, rounds)
        return found

    try:
        return bench.once("pvm", measure)
    except LaunchError as error:
        return {"left out": left_out(error)}


def _all_ways(bench: Bench, pvm: Pvm, found: dict[str, Any], rounds: Mapping[int, int]) -> None:
    """Measure all routes and encodings into ``found``; small messages come first, as in the study."""
    sizes = found["sizes"]
    for route in ("daemon", "direct"):
        for encoding in ("xdr", "inplace"):
            bench.say(f"  PVM, {route}, {encoding} ...")
            times = pvm.pingpong(sizes, route=route, encoding=encoding, node=FAR, rounds=rounds)
            found[f"{route} {encoding}"] = [min(times[size]) for size in sizes]


def _shown(found: Mapping[str, Any], key: str, claim: str, shape: Mapping[str, bool], **bands: Any) -> Result:
    """Return the result for one route and encoding, with the others for comparison."""
    sizes = found["sizes"]
    first = {f"{key} (here)": found[key]}
    rest = {name: values for name, values in found.items() if name not in ("sizes", "fresh", key)}
    return {"claim": claim, "panels": _both(sizes, {**first, **rest}, **bands), "shape": dict(shape)}


def _at(found: Mapping[str, Any], key: str, size: int) -> float:
    return float(found[key][found["sizes"].index(size)])


CLAIM_DAEMON: Final = (
    "Through the daemons, encoded by XDR: latency 1 to 10 ms by machine, the same from 8 to 1000 bytes; 0.4 to 0.8 "
    "MB/s, best from 1e4 bytes on (Figs. C.6, C.7)."
)


def daemon_xdr(bench: Bench) -> Result:
    """Run E1, Figs. C.6 and C.7: the daemons' route, XDR."""
    found = _pvm(bench)
    if "left out" in found:
        return _without(found, CLAIM_DAEMON)
    key = "daemon xdr"
    alike = ("daemon xdr", "direct xdr"), ("daemon inplace", "direct inplace")
    fresh = _LARGE / found["fresh"] / MIB
    shape = {
        "the slowest way, whatever the size and the encoding": all(
            _at(found, daemons, size) > _at(found, direct, size) for daemons, direct in alike for size in found["sizes"]
        ),
        "latency does not depend on the size up to 96 bytes": _at(found, key, 96) < 1.5 * _at(found, key, 8),
        "60 kB after small messages take at least 1.3 times as long as from task to task": (
            _at(found, key, _LARGE) > 1.3 * _at(found, "direct xdr", _LARGE)
        ),
        "less than 0.8 of the wire": _LARGE / _at(found, key, _LARGE) / MIB < 0.8 * WIRE,
    }
    shown = _shown(found, key, CLAIM_DAEMON, shape, bands={"the study: 0.4 to 0.8 MB/s": (0.4, 0.8)},
                   time_bands={"the study's latencies": (1.0, 10.0)})  # fmt: skip
    # The daemons learn from small messages how long to wait for acknowledgements, and then resend large messages.
    return shown | {"MB/s of 60 kB where no small message came before": fresh}


CLAIM_DAEMON_RAW: Final = (
    "Through the daemons, translated at the receiver where it must be: latency and times as with XDR, so that encoding "
    "matters little; equal machines are faster (Figs. C.8, C.9)."
)


def daemon_translated(bench: Bench) -> Result:
    """Run E2, Figs. C.8 and C.9: the daemons' route, no encoding."""
    found = _pvm(bench)
    if "left out" in found:
        return _without(found, CLAIM_DAEMON_RAW)
    ratio = _at(found, "daemon inplace", _LARGE) / _at(found, "daemon xdr", _LARGE)
    slow, fast = ([_at(found, f"{route} {e}", _LARGE) for e in ("xdr", "inplace")] for route in ("daemon", "direct"))
    shape = {
        "the route matters more than the encoding: 60 kB are faster direct, whatever the encoding": max(fast)
        < min(slow)
    }
    return _shown(found, "daemon inplace", CLAIM_DAEMON_RAW, shape) | {"time over that with XDR at 60 kB": ratio}


CLAIM_DIRECT: Final = (
    "From task to task over TCP, XDR: latency nearer 1 ms; two machines, prited and sofia, are very slow above 1000 "
    "bytes (Figs. C.10, C.11)."
)


def direct_xdr(bench: Bench) -> Result:
    """Run E3, Figs. C.10 and C.11: task to task, XDR."""
    found = _pvm(bench)
    if "left out" in found:
        return _without(found, CLAIM_DIRECT)
    size = found["sizes"][-1]
    part = size / _at(found, "direct xdr", size) / payload_rate(HUB, "tcp")
    shape = {
        "latency is lower than the daemons'": _at(found, "direct xdr", 8) < _at(found, "daemon xdr", 8),
        "0.9 of TCP's payload rate": part >= 0.9,
    }
    return _shown(found, "direct xdr", CLAIM_DIRECT, shape) | {f"part of TCP's payload rate at {size} bytes": part}


CLAIM_DIRECT_RAW: Final = (
    "From task to task, translated at the receiver (PvmDataInPlace): for the first time more than 1 MB/s; prited and "
    "sofia stay slow, so that encoding is not what ails them (Figs. C.12, C.13)."
)


def direct_translated(bench: Bench) -> Result:
    """Run E4, Figs. C.12 and C.13: task to task, no encoding."""
    found = _pvm(bench)
    if "left out" in found:
        return _without(found, CLAIM_DIRECT_RAW)
    size = found["sizes"][-1]
    rate = size / _at(found, "direct inplace", size) / MIB
    return _shown(found, "direct inplace", CLAIM_DIRECT_RAW, {"more than 1 MB/s": rate > 1.0},
                  bands={"the study: above 1 MB/s": (1.0, WIRE)})  # fmt: skip


def _without(found: Mapping[str, Any], claim: str) -> Result:
    return {"claim": claim, "left out": found["left out"], "shape": {}}


# Misconfigured TCP, and ping ------------------------------------------------------------------------------------------
CLAIM_ANOMALY: Final = (
    "With TCP prited and sofia take far longer than the others above 1000 bytes; with ping and UDP they do not: the "
    "hardware is well, the configuration of TCP is not (Figs. C.10, C.14, C.16)."
)
_SMALL: Final = "2048 2048 2048"
"""Buffer of a single frame: the sender then waits for each acknowledgement, which the receiver delays by 40 ms."""
_ILL: Final = "sofia"


def anomalies(bench: Bench) -> Result:
    """Run E5: a machine whose TCP buffer holds a single frame, as seen by ICMP, UDP and TCP."""
    sizes = [8, 100, 1000, 4000, 16_000]
    transports = ("icmp", "udp", "tcp")
    seconds: dict[str, list[float | None]] = {}
    with laboratory(hub()) as cluster:
        ill = cluster.node(_ILL)
        done = cluster.execute(ill, ["sysctl", "-w", f"net.ipv4.tcp_wmem={_SMALL}"], capture_output=True, text=True)
        if done.returncode != 0:
            return {"claim": CLAIM_ANOMALY, "left out": f"sysctl: {done.stderr.strip()}", "shape": {}}
        with team_of(cluster) as team:
            for transport in transports:
                for node in (FAR, ill):
                    label = f"{transport}, {cluster.names[node]}"
                    seconds[label] = one_way(team, cluster, node, transport, sizes, 6.0 if bench.quick else 15.0)
        well = cluster.names[FAR]
        section = measure_hosts(
            hosts_of(cluster), lambda host, command: cluster.command(host.name, command), 30.0 if bench.quick else 60.0
        )
    named = [f"{one['name']} of {one['node']}" for one in section["anomalies"]]
    factor = {t: _ratio(seconds[f"{t}, {_ILL}"][-1], seconds[f"{t}, {well}"][-1]) for t in transports}
    small = _ratio(seconds[f"tcp, {_ILL}"][2], seconds[f"tcp, {well}"][2])
    return {
        "claim": CLAIM_ANOMALY,
        "panels": _both(sizes, seconds),
        f"time of 16 kB to {_ILL} over that to {well}": {t: _known(value) for t, value in factor.items()},
        "minga measure names": named or "nothing",
        "shape": {
            f"TCP to {_ILL} takes at least three times as long as to {well}": factor["tcp"] > 3.0,
            "not so up to 1000 bytes": small < 1.3,
            "nor with ICMP and UDP": all(factor[t] < 1.3 for t in ("icmp", "udp")),
            f"minga measure names the configuration of TCP on {_ILL}, and no other machine": bool(named)
            and all(one.endswith(f" of {_ILL}") for one in named),
        },
    }


def _ratio(value: float | None, other: float | None) -> float:
    return math.nan if not value or not other else value / other


def _known(value: float) -> float | None:
    """Return None for NaN, which JSON lacks."""
    return value if math.isfinite(value) else None


CLAIM_PING: Final = (
    "ping: about 1 ms of latency, nearly the same up to 1000 bytes, then in proportion to the size, near what the "
    "hardware can do; all machines are well (Figs. C.14, C.15)."
)


_OF_THE_TIME: Final = 0.8e-3
"""Delay of the network interfaces, buses and kernels of that time, s.

This latency is an input; its effect on larger messages is a result.
"""


def ping(bench: Bench) -> Result:
    """Run E6, Figs. C.14 and C.15: ICMP echo."""
    with laboratory(hub(latency=_OF_THE_TIME)) as cluster, team_of(cluster) as team:
        seconds = {
            cluster.names[node]: one_way(team, cluster, node, "icmp", PING, 4.0 if bench.quick else 10.0)
            for node in range(1, len(cluster.names))
        }
    one = seconds[next(iter(seconds))]
    slope = (PING[-1] - PING[-2]) / ((one[-1] or math.nan) - (one[-2] or math.nan))
    ceiling = payload_rate(HUB, "udp")
    largest = [values[-1] or math.nan for values in seconds.values()]
    return {
        "claim": CLAIM_PING,
        "panels": _both(PING, seconds, time_bands={"the study: about 1 ms": (0.5, 2.0)}),
        "bytes a second between 30 kB and 60 kB": _known(slope),
        "shape": {
            "1000 bytes take less than twice as long as 56": (one[2] or math.nan) < 2.0 * (one[0] or math.nan),
            "from there on within a tenth of the wire": abs(slope / ceiling - 1.0) < 0.1,
            "all machines are alike at 60 kB, within a tenth": all(a < 1.1 * b for a in largest for b in largest),
        },
    }
