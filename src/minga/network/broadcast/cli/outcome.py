"""Outcome of ``minga bcast`` on all hosts: the result, or the error that names those that do not have the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minga.errors import MingaError, RunError
from minga.network.broadcast.cli.agents import Outcome

__all__ = ["BroadcastError", "as_json", "failure", "result", "text"]

_REPORTED = ("kind", "files", "bytes", "sent_bytes", "packed_bytes", "seconds", "passed_over", "sha256")
_ALONE = "others did not take part"
_REMEDY = (
    "send it again when these hosts are available, which resumes the transfer; --on-loss exclude sends it to the others"
)
"""Remedy where no host has the file."""
_TO_THE_REST = "send it to the others alone when they are available, which resumes the transfer"
"""Remedy where some hosts have it."""


class BroadcastError(RunError):
    """Error of a broadcast that some hosts did not receive.

    Parameters
    ----------
    message, remedy
        As for every error.
    received
        Hosts that have the file.
    failed
        Hosts that do not have it, with the reason of each.
    """

    def __init__(self, message: str, *, remedy: str, received: Sequence[str], failed: Mapping[str, str]) -> None:
        super().__init__(message, remedy=remedy)
        self.received = tuple(received)
        self.failed = dict(failed)


def as_json(error: MingaError) -> dict[str, Any]:
    """Return an error as JSON-serialisable data: message, remedy, and hosts with and without the file if known."""
    return {
        "error": error.message,
        "remedy": error.remedy,
        "received": list(getattr(error, "received", ())),
        "failed": dict(getattr(error, "failed", {})),
    }


def result(rounds: Sequence[Sequence[Outcome]], late: Sequence[str]) -> dict[str, Any]:
    """Return the result of a broadcast that all hosts received, as JSON-serialisable data.

    Parameters
    ----------
    rounds
        Outcomes of the sender and of the receivers, of the first transfer and of those to hosts that came later.
    late
        Hosts that came later.
    """
    done = [one.done for one in rounds[0] if one.done is not None]
    root = done[0]
    said = {name: root[name] for name in _REPORTED}
    return {
        **said,
        "changed": root["changed_bytes"] > 0 or any(one["changed"] for one in done[1:]),
        "route": root["statistics"]["route"],
        "from": rounds[0][0].host,
        "received": _received(rounds),
        "late": list(late),
        "statistics": root["statistics"],
    }


def failure(
    rounds: Sequence[Sequence[Outcome]], absent: Mapping[str, MingaError], receivers: Sequence[str]
) -> BroadcastError | None:
    """Return an error that names the hosts without the file, and the reasons; None if all have it.

    Hosts that vanished take precedence over those that failed by themselves, and these over those that only saw others
    fail.

    Parameters
    ----------
    rounds
        Outcomes of all transfers.
    absent
        Hosts that did not begin, with the errors.
    receivers
        Names of all hosts that should get the file.
    """
    gone: dict[str, str] = {}
    own: dict[str, Outcome] = {}
    failed: dict[str, str] = {}
    for outcomes in rounds:
        named = {number for one in outcomes for number in one.lost}
        for number, one in enumerate(outcomes):
            if one.done is not None:
                continue
            failed[one.host] = one.failed or ("it was lost" if number in named else _ALONE)
            if one.vanished or number in named:
                gone[one.host] = failed[one.host]
            elif one.failed and not one.lost:
                own[one.host] = one
    failed |= {name: error.message for name, error in absent.items()}
    begun = {one.host for outcomes in rounds for one in outcomes}
    failed |= {name: _ALONE for name in receivers if name not in begun and name not in failed}
    if not failed:
        return None
    received = _received(rounds)
    reasons = gone or {name: one.failed for name, one in own.items()} or ({} if absent else failed)
    said = [f"host {name}: {reason}" for name, reason in reasons.items()]
    remedy = _TO_THE_REST if received else _REMEDY
    if not gone and own:
        first = next(iter(own.values()))
        remedy = first.remedy or remedy
        if all(one.failed == first.failed for one in own.values()):
            said = [first.failed]
    if absent and not said:
        remedy = next(iter(absent.values())).remedy or remedy
    said += [error.message for error in absent.values()]
    has = "has" if len(received) == 1 else "have"
    kept = f"{', '.join(received)} {has} the whole file" if received else "no host has the file"
    return BroadcastError(f"{'; '.join(said)}; {kept}", remedy=remedy, received=received, failed=failed)


def _received(rounds: Sequence[Sequence[Outcome]]) -> list[str]:
    return [one.host for outcomes in rounds for one in outcomes[1:] if one.done is not None]


def text(result: Mapping[str, Any]) -> str:
    """Return the result as text for the terminal."""
    size, sent, packed, seconds = (result[name] for name in ("bytes", "sent_bytes", "packed_bytes", "seconds"))
    rate = f", {sent / seconds / 1e6:.4g} MB/s" if seconds > 0 and sent else ""
    count = result["files"]
    files = f" in {count} file{'' if count == 1 else 's'}" if result["kind"] == "tree" else ""
    receivers = "1 host" if len(result["received"]) == 1 else f"{len(result['received'])} hosts"
    lines = [f"{size / 1e6:.6g} MB{files} to {receivers} in {seconds:.3g} s{rate}, by {result['route']}"]
    if result["changed"]:
        lines.append("  it has changed since an earlier transfer was broken off; what had changed was sent again")
    if sent < size:
        lines.append(f"  {(size - sent) / 1e6:.6g} MB were there from an earlier transfer")
    if packed < sent:
        lines.append(f"  sent as {packed / 1e6:.6g} MB, compressed")
    if result["late"]:
        lines.append(f"  {', '.join(result['late'])} came late and got it afterwards")
    lines += [f"  {way} was not used: {why}" for way, why in result["passed_over"].items()]
    lines.append(f"  sha256 {result['sha256']}")
    return "\n".join(lines)
