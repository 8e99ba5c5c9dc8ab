"""Hosts files: one format for all commands, which includes the node files of MPI and of batch systems."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from minga.errors import CaseError, LayoutError, suggest
from minga.launch.hosts import Host
from minga.paths import is_plain_name
from minga.plan.slurm import names_in

__all__ = ["read_hosts"]

_KEYS: Final = ("slots", "cores", "weight", "address", "user", "port", "python", "directory")
_IGNORED: Final = ("max_slots", "max-slots")
"""Keys of Open MPI that have no meaning here."""
_FORM: Final = "write NAME slots=2 address=10.0.0.2 python=/opt/minga/bin/python, without spaces around ="
_COUNTED: Final = re.compile(r"([^:]+):(\d+)")
_MOST: Final = 1 << 20


def read_hosts(path: str | Path, least: int = 2) -> list[Host]:
    """Read a hosts file: one host per line, with comments after ``#``.

    A name may be followed by a number of ranks, as in ``ana:4``, and by options: ``slots=4 address=10.0.0.2``. Lists
    such as ``node[1-3,07-10]`` stand for several hosts with equal options. If a host is repeated, each line adds its
    ranks, or one rank; then every host without a number has one rank.

    Parameters
    ----------
    path
        The file.
    least
        Minimum number of hosts.

    Returns
    -------
    list of Host
        The hosts, in the order of their first lines.

    Raises
    ------
    CaseError
        If the file cannot be read or understood, contradicts itself, or lists fewer than ``least`` hosts.
    """
    file = Path(path)
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise CaseError(f"the hosts file {file} cannot be read: {reason}", remedy="write one host a line") from error
    found: dict[str, Host] = {}
    repeated = False
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        for host in _hosts(words, (str(file), number)) if words else ():
            known = found.get(host.name)
            repeated = repeated or known is not None
            found[host.name] = host if known is None else _merged(known, host, str(file))
    if len(found) < least:
        raise CaseError(
            f"the hosts file lists {len(found)} host{'' if len(found) == 1 else 's'}"
            + ("; a network needs two" if least == 2 else ""),
            where=str(file),
            remedy="write one host a line",
        )
    return [replace(host, slots=host.ranks) if repeated else host for host in found.values()]


def _hosts(words: Sequence[str], where: tuple[str, int]) -> Iterator[Host]:
    """Yield the hosts of a line."""
    options = _options(words[1:], where)
    counted = _COUNTED.fullmatch(words[0])
    if counted is not None:
        if "slots" in options:
            raise CaseError(f"{words[0]} slots=... gives two numbers of ranks", where=where, remedy="write one of them")
        options["slots"] = _count("slots", counted[2], where)
    listed = counted[1] if counted is not None else words[0]
    try:
        names = names_in(listed)
    except LayoutError as error:
        remedy = "begin the line with the name of a host, or a list such as node[1-3,07]"
        raise CaseError(error.message, where=where, remedy=remedy) from None
    for name in names:
        if name.startswith("-") or "=" in name or not is_plain_name(name):
            raise CaseError(f"{name!r} is no name of a host", where=where, remedy="begin the line with the name")
        yield Host(name, line=where[1], **options)


def _options(words: Sequence[str], where: tuple[str, int]) -> dict[str, Any]:
    """Return the options after a host's name, checked."""
    given: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key in _IGNORED:
            continue
        if key not in _KEYS or not equals or not value:
            raise CaseError(
                f"{word!r} is not understood after a host's name",
                where=where,
                suggestion=suggest(key, _KEYS),
                remedy=f"{_FORM}; known are {', '.join(_KEYS)}",
            )
        if key in given:
            raise CaseError(f"{key} is given twice", where=where, remedy="write it once")
        given[key] = _value(key, value, where)
    return given


def _value(key: str, value: str, where: tuple[str, int]) -> Any:
    if key in ("slots", "cores"):
        return _count(key, value, where)
    if key == "port":
        port = _count(key, value, where)
        if port > 65535:
            raise CaseError(f"port={value} is no port", where=where, remedy="write a number up to 65535")
        return port
    if key == "weight":
        return _weight(value, where)
    if key == "directory" and not value.startswith("/"):
        raise CaseError(f"directory={value} is no absolute path", where=where, remedy="write directory=/scratch/name")
    if value.startswith("-"):
        raise CaseError(f"{key}={value} begins with -", where=where, remedy=_FORM)
    return value


def _count(key: str, value: str, where: tuple[str, int]) -> int:
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= _MOST:
        what = "ranks" if key == "slots" else key
        raise CaseError(f"{key}={value} is no number of {what}", where=where, remedy=f"write {key}=4")
    return int(value)


def _weight(value: str, where: tuple[str, int]) -> float:
    try:
        weight = float(value)
    except ValueError:
        weight = -1.0
    if not (math.isfinite(weight) and weight >= 0):
        raise CaseError(
            f"weight={value} is no relative speed", where=where, remedy="write weight=2 for a host of twice the speed"
        )
    return weight


def _merged(known: Host, host: Host, file: str) -> Host:
    """Return a host that is repeated: its ranks add up, and options must not differ."""
    together = {}
    for name in (field.name for field in fields(Host)):
        mine, other = getattr(known, name), getattr(host, name)
        if name not in ("slots", "line") and None not in (mine, other) and mine != other:
            raise CaseError(
                f"host {host.name} has {name}={mine} in line {known.line}, and {name}={other} here",
                where=(file, host.line),
                remedy="write options of a host once",
            )
        together[name] = other if mine is None else mine
    return Host(**together | {"slots": known.ranks + host.ranks})
