"""Stages of a measurement, each of which stores its results in the network section of a machine's JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from minga.network.measuring.anomalies import find_anomalies
from minga.network.measuring.curves import Curve, measure_curves
from minga.network.measuring.encodings import ENCODINGS
from minga.network.measuring.exchanges import Ends, both_sides, payload, sample_message_sizes
from minga.network.measuring.matrix import PairMatrix
from minga.network.measuring.one_way import telling
from minga.network.measuring.overlap import cures
from minga.network.measuring.piecewise import Fit
from minga.network.measuring.sampling import between, message_sizes
from minga.network.measuring.section import break_names, drain_time, fits_of, from_points, links_from, measured_link
from minga.network.measuring.team import Team
from minga.network.measuring.trains import Train, loggp
from minga.network.measuring.transports import Unavailable

__all__ = [
    "SHARES",
    "Survey",
    "broadcast_advice",
    "cache_stage",
    "curve_stage",
    "encoding_stage",
    "host_stage",
    "link_stage",
]

SHARES = {"pairs": 0.2, "links": 0.3, "curves": 0.25, "hosts": 0.1, "overlap": 0.15}
"""Fractions of the time budget."""

_OVERHEAD_SIZES = (1, 1000, 60_000)
_TRAIN_SIZES = (1, 100, 1000, 4000, 16_000, 60_000)
_ONE_WAY_SIZES = (1000, 60_000, 1_000_000)
_OVERLAP_SIZES = (60_000, 300_000, 1_000_000, 4_000_000)
_CACHE_SIZES = (1000, 60_000, 1_000_000)
_BROADCAST = 1_000_000
_ENCODED_SIZES = (1000, 60_000, 1_000_000)

Progress = Callable[[float, str], None]


@dataclass
class Survey:
    """State of a measurement: the participants, the time budget, and the results so far."""

    team: Team
    members: Sequence[int]
    """Members that represent their machines."""
    known: Mapping[int, Mapping[str, Any]]
    """Identity that each member reports."""
    addresses: Mapping[tuple[int, int], str | None]
    transports: Sequence[str]
    budget: float
    seed: int
    progress: Progress
    section: dict[str, Any]
    fits: dict[str, Fit] = field(default_factory=dict)
    """Fits between machines, by transport."""

    def share(self, stage: str) -> float:
        """Return the time budget of a stage in seconds."""
        return SHARES[stage] * self.budget


def link_stage(survey: Survey, ends: Ends, transport: str, budget: float) -> None:
    """Measure all sizes between two machines, then more around the breaks, and check the interface's counters."""
    section, seed = survey.section, survey.seed
    interface = section["environment"].get("interface") or {}
    sizes = message_sizes(mtu=int(interface.get("mtu") or 1500), neighbours=True)
    names = break_names(transport, section["environment"], section["library"])
    try:
        before = _sent(survey.team, ends, interface)
        samples = sample_message_sizes(survey.team, ends, transport, sizes, 0.8 * budget, seed)
        fits = fits_of(samples, names, seed)
        extra = between([sample.size for sample in samples], [piece.least for piece in fits[1].pieces[1:]])
        if extra:
            more = sample_message_sizes(survey.team, ends, transport, extra, 0.2 * budget, seed + 1)
            new = {sample.size: sample for sample in (*samples, *more)}
            samples = [new[size] for size in sorted(new)]
            fits = fits_of(samples, names, seed)
        after = _sent(survey.team, ends, interface)
    except Unavailable as error:
        section["unavailable"][transport] = error.message
        return
    if before is not None and after is not None and (transport == "mpi" or section["crossed"] is None):
        sent, least = after - before, payload(samples)
        section["crossed"] = {
            "transport": transport,
            "interface": interface["name"],
            "sent": sent,
            "payload": least,
            "enough": sent >= 0.95 * least,
        }
    members = (ends.sender, ends.receiver)
    section["links"].append(measured_link(0, "nodes", transport, members, samples, fits))
    survey.fits[transport] = fits[1]


def curve_stage(survey: Survey, matrix: PairMatrix) -> None:
    """Measure the curves of each machine, and name the anomalies."""
    section = survey.section
    start, length = SHARES["pairs"] + SHARES["links"], SHARES["curves"]
    curves, missing = measure_curves(
        survey.team,
        matrix,
        survey.members,
        survey.addresses,
        survey.transports,
        survey.share("curves"),
        survey.seed,
        lambda part, what: survey.progress(start + length * part, what),
    )
    section["machines"] = [curve.as_dict() for curve in curves]
    section["unavailable"] |= missing
    around = _environments(survey, curves)
    section["settings"] = {str(member): environment for member, environment in around.items()}
    found = find_anomalies(curves, survey.known, around, matrix)
    section["anomalies"] = [anomaly.as_dict() for anomaly in found]
    section["advice"] += [str(anomaly) for anomaly in found]


def broadcast_advice(survey: Survey) -> None:
    """Add advice on the best route for broadcasting a megabyte to all machines, and on settings of the MPI library."""
    from minga.plan.broadcasting import best_route, mpi_advice

    section, receivers = survey.section, len(survey.members) - 1
    medium = section["pairs"]["medium"]["kind"]
    if receivers < 2 or medium not in ("switch", "hub") or not section["links"]:
        return
    link = links_from(section, 0).levels[0]
    heard = any(curve["transport"] == "udpbcast" for curve in section["machines"])
    route = best_route(_BROADCAST, receivers, link, medium, group=heard, mpi=section["library"] != "no MPI")
    setting = mpi_advice(section["library"], _BROADCAST, receivers) if medium == "switch" else None
    section["broadcast"] = {
        "bytes": _BROADCAST, "receivers": receivers, "route": route.algorithm, "seconds": route.seconds,
        "reason": route.reason, "setting": setting,
    }  # fmt: skip
    section["advice"].append(f"broadcast: {route.reason}")
    if setting is not None:
        section["advice"].append(f"the broadcast of {section['library']} is fastest with {setting}")


def host_stage(survey: Survey, ends: Ends) -> None:
    """Measure the overhead of TCP and MPI messages on the hosts, and the overlap of messages with computation."""
    section = survey.section
    carriers = [transport for transport in ("tcp", "mpi") if transport in survey.fits]
    each = survey.share("hosts") / max(1, 3 * len(carriers))
    for transport in carriers:
        survey.progress(0.75, f"overhead of {transport.upper()} messages on the hosts")
        points = both_sides(survey.team, ends, "overhead", transport, sizes=list(_OVERHEAD_SIZES), allowed=30.0)
        section["overhead"].append({"transport": transport, "points": points})
        trains = both_sides(survey.team, ends, "trains", transport, sizes=list(_TRAIN_SIZES), budget=each)
        section["trains"].append({"transport": transport, "points": trains, "loggp": _loggp(trains)})
    if carriers:
        sizes = [size for size in _ONE_WAY_SIZES if 8 * float(survey.fits[carriers[0]].time([size])[0]) < each]
        points = both_sides(survey.team, ends, "one_way", carriers[0], sizes=sizes or [1000], budget=each)
        good, said = telling(points)
        section["one_way"] = {"transport": carriers[0], "points": good, "clocks": said}
    if "mpi" in survey.fits:
        _overlap(survey, ends)


def cache_stage(survey: Survey, ends: Ends, transport: str, budget: float) -> None:
    """Measure the same messages with memory that is in a cache, and with memory that is not."""
    found = {}
    for name, cold in (("warm", False), ("cold", True)):
        samples = sample_message_sizes(survey.team, ends, transport, _CACHE_SIZES, budget / 2, survey.seed, cold=cold)
        found[name] = {sample.size: sample.summary.median for sample in samples}
    points = [
        {"bytes": size, "warm": seconds, "cold": found["cold"][size]}
        for size, seconds in found["warm"].items()
        if size in found["cold"]
    ]
    survey.section["cache"].append({"transport": transport, "members": [ends.sender, ends.receiver], "points": points})


def encoding_stage(survey: Survey, budget: float) -> None:
    """Measure the cost of each encoding on all machines at the same time, in seconds and in seconds per byte."""
    order = {"do": "encodings", "sizes": list(_ENCODED_SIZES), "budget": budget}
    replies = survey.team.run({member: dict(order) for member in survey.members})
    hosts = []
    for member, reply in replies.items():
        if "failed" in reply:  # for example, for lack of memory
            survey.section["unavailable"][f"encodings on {survey.team.names[member]}"] = reply["failed"]
            continue
        costs = reply["costs"]
        hosts.append({"member": member, **reply, "per_byte": {e: _per_byte(costs, e) for e in ENCODINGS}})
    survey.section["encodings"] = {"item": "float64 from a machine of the other byte order", "hosts": hosts}


def _per_byte(costs: Sequence[Mapping[str, Any]], encoding: str) -> dict[str, float]:
    """Return the seconds per byte of the largest message, from memory that is not in a cache."""
    largest = max((cost for cost in costs if cost["encoding"] == encoding), key=lambda cost: cost["bytes"])
    return {way: largest[f"cold_{way}"] / largest["bytes"] for way in ("encode", "decode")}


def _overlap(survey: Survey, ends: Ends) -> None:
    survey.progress(1 - SHARES["overlap"], "overlap of transfers with computation")
    section, fit, share = survey.section, survey.fits["mpi"], survey.share("overlap")
    # Each size is timed at least three times in each of seven variants.
    sizes = [size for size in _OVERLAP_SIZES if 40 * float(fit.time([size])[0]) < share]
    points = both_sides(survey.team, ends, "overlap", "mpi", sizes=sizes or [_OVERLAP_SIZES[0]], budget=share)
    drain = drain_time(section["environment"], fit)
    advice = cures(from_points(points), section["library"], drain)
    section["overlap"] = {"library": section["library"], "drain": drain, "points": points, "cures": advice}
    section["advice"] += advice


def _loggp(points: Sequence[Mapping[str, Any]]) -> dict[str, float] | None:
    keys = ("bytes", "messages", "single", "close", "spaced", "pause")
    trains = [Train(**{key: point[key] for key in keys}) for point in points]
    return asdict(loggp(trains)) if len({train.bytes for train in trains}) > 1 else None


def _environments(survey: Survey, curves: Sequence[Curve]) -> dict[int, dict[str, Any]]:
    """Return the environment of each machine towards the hub, and of the hub towards one of the machines."""
    towards = {curve.machine: curve.hub for curve in curves}
    for curve in curves:
        towards.setdefault(curve.hub, curve.machine)
    if not towards:
        return {}
    return survey.team.run(
        {
            member: {"do": "environment", "address": survey.addresses.get((member, other))}
            for member, other in towards.items()
        }
    )


def _sent(team: Team, ends: Ends, interface: Mapping[str, Any]) -> int | None:
    if "name" not in interface:
        return None
    reply = team.run({ends.sender: {"do": "counters", "interface": interface["name"]}})[ends.sender]
    found = reply.get("counters")
    return None if found is None else int(found["sent_bytes"])
