"""Switches that lead to the nodes of a cluster of Slurm: from its file ``topology.conf``, and from a job's variables.

The file has a line for each switch: ``SwitchName=leaf1 Nodes=node[1-2]`` or ``SwitchName=spine Switches=leaf[1-2]``.
The ranks of a step find ``SLURM_TOPOLOGY_ADDR=spine.leaf1.node1`` and, in ``SLURM_TOPOLOGY_ADDR_PATTERN``, the kinds of
these names, ``switch.switch.node`` (https://slurm.schedmd.com/topology.conf.html).
"""

from __future__ import annotations

import itertools
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from minga.errors import LayoutError

__all__ = ["Switches", "names_in", "padded", "read_switches", "switch_levels", "switches_here"]

Switches = tuple[str, ...]
"""Names of the switches that lead to a node, the outermost first."""

_MOST_NAMES: Final = 1 << 17
"""Maximum number of names in a list: a range such as [1-999999999] is a mistake."""
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_ENTRY: Final = re.compile(r"([A-Za-z]+)\s*=\s*(\S+)")
_REMEDY: Final = (
    "write a line for each switch: SwitchName=leaf1 Nodes=node[1-8], and SwitchName=spine Switches=leaf[1-4]"
)


def names_in(text: str) -> list[str]:
    """Return the names in a list of Slurm, such as ``"node[1-3,07],login"`` or ``"rack[1-2]n[01-03]"``, in order.

    Raises
    ------
    LayoutError
        If the list is invalid, or has more than 131072 names.
    """
    found: list[str] = []
    for word in re.split(r",(?![^\[]*\])", text.strip()):
        pieces = [_choices(piece, text) for piece in _pieces(word, text)]
        for names in itertools.product(*pieces):
            if len(found) == _MOST_NAMES:
                raise LayoutError(f"the list {text[:60]!r} has more than {_MOST_NAMES} names")
            found.append("".join(names))
    return found


def _pieces(word: str, text: str) -> list[str]:
    """Split a name into its plain parts and its parts in brackets."""
    pieces: list[str] = re.findall(r"\[[^\[\]]*\]|[^\[\]\s]+", word)
    if "".join(pieces) != word or not word:
        raise LayoutError(f"{text[:60]!r} is not a list of names", remedy="write such as node[1-3,07],login")
    return pieces


def _choices(piece: str, text: str) -> list[str]:
    """Return what a part of a name stands for, with one name too many if there are more than a list may have."""
    return list(itertools.islice(_numbers(piece[1:-1], text), _MOST_NAMES + 1)) if piece[:1] == "[" else [piece]


def _numbers(inside: str, text: str) -> Iterator[str]:
    """Yield the numbers of ``1-3,07-10``, as wide as the first of each range."""
    for part in inside.split(","):
        found = _RANGE.fullmatch(part.strip())
        first, last = (found[1], found[2] or found[1]) if found else ("1", "0")
        if not 0 <= int(last) - int(first) < _MOST_NAMES:
            raise LayoutError(f"{part!r} in {text[:60]!r} is not a range of numbers", remedy="write such as node[1-3]")
        for number in range(int(first), int(last) + 1):
            yield str(number).rjust(len(first), "0")


def switch_levels(depth: int) -> tuple[str, ...]:
    """Return the names of so many levels of switches, the outermost first: the innermost one is "switch"."""
    return tuple(f"switch{number}" if number > 1 else "switch" for number in range(depth, 0, -1))


def padded(chains: Sequence[Switches]) -> list[Switches]:
    """Return chains of switches of equal length: where a node has fewer above it, its own switch is repeated."""
    depth = max(map(len, chains), default=0)
    return [(*chain, *(chain[-1:] or ("",)) * (depth - len(chain))) for chain in chains]


def switches_here(environment: Mapping[str, str] = os.environ, host: str | None = None) -> Switches | None:
    """Return the switches that Slurm says lead to this host; None if it does not say.

    A launcher may pass the variables of the host on which it was started to all ranks, so they count only if they name
    this host.
    """
    names = environment.get("SLURM_TOPOLOGY_ADDR", "")
    kinds = environment.get("SLURM_TOPOLOGY_ADDR_PATTERN", "").split(".")
    *switches, node = names.split(".", len(kinds) - 1)
    here = platform.node() if host is None else host
    if len(switches) != len(kinds) - 1 or kinds[-1] != "node" or node.partition(".")[0] != here.partition(".")[0]:
        return None
    return tuple(name for name, kind in zip(switches, kinds, strict=False) if kind == "switch")


def read_switches(path: Path) -> dict[str, Switches]:
    """Return the switches that lead to each node of a file ``topology.conf``, the outermost first.

    Raises
    ------
    LayoutError
        If the file cannot be read or is invalid, with the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise LayoutError(f"the topology {path} cannot be read: {reason}", where=str(path)) from None
    parent: dict[str, str] = {}
    leaf: dict[str, str] = {}
    line_of: dict[str, int] = {}
    for line, entries in _lines(text, path):
        name = entries["switchname"]
        if name in line_of:
            raise LayoutError(f"switch {name!r} is described twice", where=(str(path), line), remedy=_REMEDY)
        line_of[name] = line
        for key, known in (("nodes", leaf), ("switches", parent)):
            for inner in _names(entries.get(key, ""), path, line):
                if inner in known:
                    raise LayoutError(
                        f"{inner!r} is below switch {known[inner]!r} and below switch {name!r}",
                        where=(str(path), line),
                        remedy="list each node and each switch below one switch",
                    )
                known[inner] = name
    for inner, outer in parent.items():
        if inner not in line_of:
            raise LayoutError(f"there is no switch {inner!r}", where=(str(path), line_of[outer]), remedy=_REMEDY)
    if not leaf:
        raise LayoutError("the topology has no nodes", where=str(path), remedy=_REMEDY)
    chains = {name: _chain(name, parent, path, line_of) for name in dict.fromkeys(leaf.values())}
    return {node: chains[switch] for node, switch in leaf.items()}


def _names(text: str, path: Path, line: int) -> list[str]:
    try:
        return names_in(text) if text else []
    except LayoutError as error:
        raise LayoutError(error.message, where=(str(path), line), remedy=error.remedy) from None


def _lines(text: str, path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number and the entries of each line of a switch; keys are in lower case, and lines may be continued."""
    before, first = "", 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        first = first if before else number
        whole = before + line.partition("#")[0].strip()
        if whole.endswith("\\"):
            before = whole[:-1] + " "
            continue
        before = ""
        if not whole:
            continue
        entries = {key.lower(): value for key, value in _ENTRY.findall(whole)}
        if set(entries) == {"blocksizes"}:
            continue
        entries.setdefault("switchname", entries.get("blockname", ""))
        if not entries["switchname"]:
            raise LayoutError(f"{whole[:60]!r} does not describe a switch", where=(str(path), first), remedy=_REMEDY)
        yield first, entries


def _chain(name: str, parent: Mapping[str, str], path: Path, line_of: Mapping[str, int]) -> Switches:
    """Return a switch and all around it, the outermost first."""
    chain = [name]
    while chain[-1] in parent:
        chain.append(parent[chain[-1]])
        if chain[-1] in chain[:-1]:
            raise LayoutError(
                f"switch {chain[-1]!r} is below itself", where=(str(path), line_of[chain[-1]]), remedy=_REMEDY
            )
    return tuple(reversed(chain))
