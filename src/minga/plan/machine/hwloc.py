"""The topology of a machine from a file of hwloc: ``lstopo --of xml FILE.xml`` (hwloc 1 and 2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from minga.errors import LayoutError
from minga.plan.topology import Processors, Tree, tree_of_places

__all__ = ["read_hwloc"]

_KINDS: Final = {
    "Package": "chip",
    "Socket": "chip",  # hwloc 1.10 and older
    "NUMANode": "NUMA",
    "L3Cache": "L3",
    "L2Cache": "L2",
    "Core": "core",
}
_REMEDY: Final = "write it with lstopo --of xml machine.xml on that machine"


def read_hwloc(path: Path) -> Tree:
    """Return the physical cores in a file of hwloc, without levels that divide nothing.

    Raises
    ------
    LayoutError
        If the file cannot be read, or is not a file of hwloc.
    """
    try:
        root = ElementTree.fromstring(path.read_bytes())
    except OSError as error:
        raise LayoutError(f"the topology {path} cannot be read: {error.strerror}", where=str(path)) from None
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise LayoutError(f"the topology is not valid XML: {error}", where=str(path), remedy=_REMEDY) from None
    machines = [item for item in root.iter("object") if item.get("type") == "Machine"]
    if root.tag != "topology" or not machines:
        raise LayoutError(f"expected a topology of hwloc, found <{root.tag}>", where=str(path), remedy=_REMEDY)
    places = [(number, groups) for number, machine in enumerate(machines) for groups in _cores(machine)]
    if not places:
        raise LayoutError("the topology has no processors (PU)", where=str(path), remedy=_REMEDY)
    return tree_of_places(places)


def _cores(machine: ElementTree.Element) -> Iterator[dict[str, Processors | None]]:
    """Yield, for every core of a machine, the enclosing groups of processors, by kind."""
    allowed = _cpuset(machine.get("allowed_cpuset"))
    groups: dict[str, list[frozenset[int]]] = {kind: [] for kind in _KINDS.values()}
    single: list[frozenset[int]] = []
    for item in machine.iter("object"):
        name = item.get("type", "")
        if name == "Cache":  # in hwloc 1, the level is an attribute, and instruction caches have type 2
            name = f"L{item.get('depth')}Cache" if item.get("cache_type") != "2" else ""
        processors = _processors(item)
        if allowed is not None:
            processors &= allowed
        if name == "PU" and processors:
            single.append(processors)
        elif name in _KINDS and processors:
            groups[_KINDS[name]].append(processors)
    if not groups["core"]:
        groups["core"] = single
    for core in sorted(groups["core"], key=min):
        around = {
            kind: [group for group in found if core <= group] if kind != "core" else [core]
            for kind, found in groups.items()
        }
        yield {kind: _narrowest(found) for kind, found in around.items()}


def _narrowest(groups: list[frozenset[int]]) -> Processors | None:
    """Return the smallest of several groups that contain a core, such as nested NUMA nodes."""
    ordered = sorted(tuple(sorted(group)) for group in groups)
    return min(ordered, key=len) if ordered else None


def _processors(item: ElementTree.Element) -> frozenset[int]:
    """Return the numbers of an object's logical processors, from its cpuset or from the processors inside it."""
    given = _cpuset(item.get("cpuset"))
    if given is not None:
        return given
    inside = (unit.get("os_index", "") for unit in item.iter("object") if unit.get("type") == "PU")
    return frozenset(int(index) for index in inside if index.isdigit())


def _cpuset(text: str | None) -> frozenset[int] | None:
    """Parse the bits of a mask such as ``0x00000003,0xffffffff`` (words of 32 bits, the highest first).

    Return None if there is no mask, or it is infinite, ``0xf...f,0x...``.
    """
    if text is None or not re.fullmatch(r"(0x[0-9a-fA-F]*)(,(0x[0-9a-fA-F]*)?)*", text):
        return None
    mask = 0
    for word in text.split(","):
        mask = mask << 32 | int(word or "0", 16)
    return frozenset(bit for bit in range(mask.bit_length()) if mask >> bit & 1)
