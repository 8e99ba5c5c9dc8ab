"""HTML report of a measured network: anomalies, transports, machines, pairs, and overhead on the hosts."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minga.errors import CaseError
from minga.network.measuring.encodings import ENCODINGS
from minga.network.measuring.section import link_from
from minga.network.pages.curves_plot import curves_figure, panels
from minga.network.pages.network_plot import network_figure
from minga.output.directory import write_whole
from minga.view.pages import fill

if TYPE_CHECKING:
    from minga.plan.machine.machine import Machine

__all__ = ["network_page", "write_network_page"]

Section = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """Table of text: names of the columns, and rows."""

    head: Sequence[str]
    body: Sequence[Sequence[str]]


def write_network_page(machine: Machine, file: Path) -> Path:
    """Write the page of a measured machine to ``file``, and return its path.

    Raises
    ------
    CaseError
        If the network of the machine was not measured.
    RunError
        If the file cannot be written.
    """
    section = machine.measured.get("network")
    if not section:
        raise CaseError(
            f"the network of {machine.name} was not measured, so there is nothing to report",
            remedy="minga measure --network --html network.html",
        )
    write_whole(file, network_page(machine.name, section, machine.measured))
    return file


def network_page(name: str, section: Section, measured: Mapping[str, Any] | None = None) -> str:
    """Return the HTML page for a ``network`` section; ``measured`` contains the time and the version of minga."""
    about = measured or {}
    between = [entry for entry in section["links"] if entry["level"] == 0]
    best = next(
        (entry for kind in ("mpi", "tcp", "udp", "icmp") for entry in between if entry["transport"] == kind), None
    )
    best = best or next(iter(section["links"]), None)
    names = section["pairs"].get("names", [])
    medium = section["pairs"].get("medium", {})
    cards = (
        [(medium.get("kind", "unknown"), "connects the machines"), (str(len(names)), "machines")] if names[1:] else []
    )
    if best is not None:
        link = link_from(best)
        label = best["transport"].upper()
        cards.append((_time(float(link.time(0))), f"latency of {label}"))
        cards.append((_rate(1e6 / float(link.time(1e6))), f"for a megabyte by {label}"))
    content = {
        "name": name,
        "lead": f"{', '.join(names[:8])}{' and more' if len(names) > 8 else ''}; {section['library']}",
        "cards": cards,
        "anomalies": section.get("anomalies", ()),
        "advice": _remarks(section),
        "links": _links(section),
        "network_picture": _picture(network_figure(section)) if section["links"] else "",
        "machines_picture": _picture(curves_figure(section)) if panels(section) else "",
        "medium": f"{str(medium.get('kind', 'unknown')).capitalize()}: {medium.get('evidence', '')}.",
        "latencies": _pairs(section, "latency", 1e6),
        "bandwidths": _pairs(section, "bandwidth", 1e-6),
        "overhead": _overhead(section),
        "trains": _trains(section),
        "caches": _caches(section),
        "encodings": _encodings(section),
        "one_way": _one_way(section),
        "one_way_said": (section.get("one_way") or {}).get("clocks", "").capitalize(),
        "overlap": _overlap(section),
        "members": _members(section),
        "missing": Table(("", "why"), list(section.get("unavailable", {}).items())),
        "seconds": f"{section.get('seconds', math.nan):.0f}",
        "version": about.get("minga", ""),
        "made": about.get("time", ""),
    }
    return fill(Path(__file__).parent / "network.html.j2", content)


def _picture(figure: Any) -> str:
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode()


def _remarks(section: Section) -> list[str]:
    """Return the advice without the anomalies, which the page lists separately."""
    said = {one["node"] for one in section.get("anomalies", ())}
    names = {one["name"] for one in section.get("anomalies", ())}
    return [
        text
        for text in section["advice"]
        if not any(text.startswith(f"{name} of {node}:") for name in names for node in said)
    ]


def _links(section: Section) -> Table:
    rows = []
    for entry in section["links"]:
        fit = entry["fit_median"]
        last = fit["pieces"][-1]
        pieces = ", ".join(f"from {piece['least']}" + (f" ({piece['name']})" if piece["name"] else "")
                           for piece in fit["pieces"][1:])  # fmt: skip
        rows.append(
            (
                entry["transport"].upper(),
                entry["between"],
                _time(fit["zero"]),
                _rate(fit["bandwidth"]) if fit["bandwidth"] else "unknown",
                f"{fit['half']:.0f}" if fit["half"] else "unknown",
                f"{_time(last['alpha'])} + {last['beta'] * 1e9:.4g} ns n",
                pieces or "none",
            )
        )
    head = ("transport", "between", "latency", "bandwidth", "n½ (bytes)", "large messages", "breaks")
    return Table(head, rows)


def _pairs(section: Section, what: str, factor: float) -> Table:
    names = section["pairs"].get("names", [])
    found = {(pair["sender"], pair["receiver"]): pair for pair in section["pairs"].get("pairs", ())}

    def value(i: int, j: int) -> str:
        pair = found.get((i, j))
        if pair is None:
            return ""
        rate = pair["size"] / max(pair["seconds"] - pair["latency"], 1e-9)
        return f"{factor * (pair['latency'] if what == 'latency' else rate):.4g}"

    if not found:
        return Table((), ())
    rows = [(names[i], *(value(i, j) for j in range(len(names)))) for i in range(len(names))]
    return Table(("", *names), rows)


def _overhead(section: Section) -> Table:
    rows = [
        (
            one["transport"].upper(),
            str(point["bytes"]),
            _time(point["send"]),
            _time(point["receive"]),
            f"{point['cpu_send'] * 1e9:.3g}",
            f"{point['cpu_receive'] * 1e9:.3g}",
        )
        for one in section.get("overhead", ())
        for point in one["points"]
    ]
    return Table(("", "bytes", "send", "receive", "processor sending (s/GB)", "processor receiving (s/GB)"), rows)


def _trains(section: Section) -> Table:
    rows = [
        (
            one["transport"].upper(),
            _time(found["latency"]),
            _time(found["overhead"]),
            _time(found["gap"]),
            f"{found['byte'] * 1e9:.4g} ns",
        )
        for one in section.get("trains", ())
        if (found := one["loggp"]) is not None
    ]
    return Table(("", "latency L", "overhead o", "gap g", "gap per byte G"), rows)


def _caches(section: Section) -> Table:
    rows = [
        (
            one["transport"].upper(),
            str(point["bytes"]),
            _time(point["warm"]),
            _time(point["cold"]),
            f"{point['cold'] / point['warm']:.2f}",
        )
        for one in section.get("cache", ())
        for point in one["points"]
    ]
    return Table(("", "bytes", "in cache", "out of cache", "ratio"), rows)


def _encodings(section: Section) -> Table:
    names = {member["number"]: member["host"] for member in section["members"]}
    rows = [
        (
            names.get(host["member"], str(host["member"])),
            *(f"{host['per_byte'][e][way] * 1e9:.3g}" for e in ENCODINGS for way in ("encode", "decode")),
        )
        for host in (section.get("encodings") or {}).get("hosts", ())
    ]
    return Table(("", *(f"{e}: {way}" for e in ENCODINGS for way in ("write", "read"))), rows)


def _one_way(section: Section) -> Table:
    points = (section.get("one_way") or {}).get("points", ())
    rows = [(str(p["bytes"]), _time(p["there"]), _time(p["back"]), _time(p["doubt"])) for p in points]
    return Table(("bytes", "there", "back", "uncertainty"), rows)


def _overlap(section: Section) -> Table:
    points = (section.get("overlap") or {}).get("points", ())
    rows = []
    for point in points:
        best = max((one["overlap"] for one in point["polled"]), default=math.nan)
        rows.append((str(point["bytes"]), _time(point["pure"]), f"{point['overlap']:.0%}", f"{best:.0%}"))
    return Table(("bytes", "transfer", "hidden without polling", "hidden with polling"), rows)


def _members(section: Section) -> Table:
    rows = []
    for member in section["members"]:
        around = section.get("settings", {}).get(str(member["number"])) or {}
        interface = around.get("interface") or {}
        memory = member.get("memory")
        rows.append(
            (
                member["host"],
                str(member["mpi"] or "none"),
                f"{interface.get('name', '')} {interface.get('mtu', '')}",
                str(member.get("order", "")),
                f"{memory / 1e9:.3g} GB" if memory else "",
                (around.get("settings") or {}).get("net.ipv4.tcp_wmem") or "",
                f"{around['load']:.2f}" if "load" in around else "",
            )
        )
    return Table(("", "MPI", "interface, MTU", "byte order", "memory", "tcp_wmem", "load"), rows)


def _time(seconds: float) -> str:
    unit, factor = next(((u, f) for u, f in (("s", 1.0), ("ms", 1e3)) if abs(seconds) * f >= 1), ("µs", 1e6))
    return f"{seconds * factor:.4g} {unit}"


def _rate(rate: float) -> str:
    return f"{rate / 1e6:.4g} MB/s"
