"""Machines as people write them: ``"16x2x2"``, ``"rack=2 node=16 core=8"``, ``"torus 4x2 core=8"``, nested lists."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from minga.errors import LayoutError
from minga.plan.network import Network
from minga.plan.slurm import read_switches
from minga.plan.topology import MOST_CORES, NODE, Tree, numbered_nodes, tree_of_places

__all__ = ["nested_tree", "parsed_tree"]

_DEEPEST: Final = 16
_NAMES: Final = (("core",), (NODE, "core"), (NODE, "chip", "core"), (NODE, "chip", "cache", "core"))
_FORMS: Final = (
    'write the numbers of nodes, chips in each and cores in each, "16x2x2"; levels by name, the outermost first, '
    '"rack=2 node=16 core=8"; a network of nodes, "torus 4x2 core=8", "mesh 4x2" or "ring 8"; nested lists whose '
    'numbers are cores, "[[2, 2], [4]]" for two nodes, one of them with a single chip, or with names, '
    '"rack node core: [[4, 4], [2]]"; or name a file that lstopo --of xml wrote, or the topology.conf of Slurm'
)
_COUNTS: Final = r"[1-9]\d{0,8}(?:x[1-9]\d{0,8})*"
_LEVEL: Final = re.compile(r"([A-Za-z][A-Za-z0-9_-]{0,31})=([1-9]\d{0,8})")
_NETWORK: Final = re.compile(rf"(torus|mesh|ring)\s+({_COUNTS})(?:[\s,]+(.*))?")
_NAMED_LISTS: Final = re.compile(r"([A-Za-z][\w-]{0,31}(?:[\s,/]+[A-Za-z][\w-]{0,31})*)\s*:\s*(\[.*)", re.DOTALL)


def parsed_tree(text: str) -> Tree:
    """Return the cores of a machine from its description; see :meth:`Tree.parse`."""
    words = text.strip()
    if words.endswith(".xml"):
        from minga.plan.machine.hwloc import read_hwloc

        return read_hwloc(Path(words))
    if words.endswith(".conf"):
        found = read_switches(Path(words))
        return tree_of_places([(number, {}) for number in range(len(found))], list(found.values()))
    if re.fullmatch(_COUNTS, words) and words.count("x") < len(_NAMES):
        counts = [int(number) for number in words.split("x")]
        return _uniform(_NAMES[len(counts) - 1], counts, text)
    if words.startswith("["):
        return nested_tree(_lists(words))
    if (lists := _NAMED_LISTS.fullmatch(words)) is not None:
        return nested_tree(_lists(lists[2]), re.split(r"[\s,/]+", lists[1]))
    if (network := _NETWORK.fullmatch(words)) is not None:
        return _on_network(network[1], [int(number) for number in network[2].split("x")], network[3] or "", text)
    if "=" in words:
        return _uniform(*_named(words, text), text)
    raise _unknown(text)


def nested_tree(groups: Sequence[object], levels: Sequence[str] = ()) -> Tree:
    """Return the cores of nested lists; see :meth:`Tree.nested`."""
    paths = list(itertools.islice(_paths(groups), MOST_CORES + 1))
    depths = {len(path) for path in paths}
    if len(paths) > MOST_CORES or not paths:
        raise LayoutError(f"a topology has 1 to {MOST_CORES} cores", remedy=_FORMS)
    if len(depths) > 1 or (not levels and max(depths) > len(_NAMES)):
        raise LayoutError(
            f"the cores of the topology {json.dumps(groups)[:60]} lie {' or '.join(map(str, sorted(depths)))} "
            "levels deep",
            remedy=f"use one depth of at most {len(_NAMES)} levels: [[4]] is a node with one chip of 4 cores; or name "
            'the levels, "rack node chip core: [[[2, 2], [4]], [[4]]]"',
        )
    if levels:
        _check_levels(levels, json.dumps(groups))
        if len(levels) != max(depths):
            raise LayoutError(
                f"{len(levels)} levels are named ({', '.join(levels)}), and the lists are {max(depths)} deep",
                remedy="name each level of the lists, the outermost first",
            )
    names = tuple(levels) or _NAMES[max(depths) - 1]
    return Tree(names, numbered_nodes(names, np.array(paths, np.int64)))


def _uniform(levels: Sequence[str], counts: Sequence[int], text: str) -> Tree:
    """Return a machine whose groups of a level are all equal."""
    if math.prod(counts) > MOST_CORES:
        raise LayoutError(f"topology {text[:60]!r} has {math.prod(counts)} cores, more than {MOST_CORES}")
    rows = np.indices(tuple(counts)).reshape(len(counts), -1).T
    return Tree(tuple(levels), numbered_nodes(levels, np.ascontiguousarray(rows, np.int64)))


def _named(words: str, text: str) -> tuple[list[str], list[int]]:
    """Return the names and counts of ``"rack=2 node=16 core=8"``; a machine without cores has one in each group."""
    levels, counts = [], []
    for word in re.split(r"[\s,]+", words):
        found = _LEVEL.fullmatch(word)
        if found is None:
            raise _unknown(text, f": {word!r} is not a level and its number, such as node=16")
        levels.append(found[1])
        counts.append(int(found[2]))
    if levels[-1] == NODE:
        levels.append("core")
        counts.append(1)
    _check_levels(levels, text)
    return levels, counts


def _check_levels(levels: Sequence[str], text: str) -> None:
    twice = next((name for name in levels if list(levels).count(name) > 1), None)
    if twice is not None:
        raise LayoutError(f"topology {text[:60]!r} has two levels {twice!r}", remedy="give each level its own name")
    if NODE not in levels:
        raise LayoutError(
            f"the levels of the topology {text[:60]!r} are {', '.join(levels)}, and none of them is the node",
            remedy='name it "node": "rack=2 node=16 core=8"; switches are outside of it, chips inside',
        )


def _on_network(kind: str, shape: Sequence[int], inside: str, text: str) -> Tree:
    """Return equal nodes on a network; ``inside`` are the levels inside a node."""
    if kind == "ring" and len(shape) != 1:
        raise LayoutError(f"topology {text[:60]!r}: a ring has one number of nodes", remedy='write "ring 8"')
    network = Network.torus(shape, closed=kind != "mesh")
    levels, counts = _named(f"{NODE}={len(network)} {inside}".strip(), text)
    if math.prod(counts) > MOST_CORES:
        raise LayoutError(f"topology {text[:60]!r} has {math.prod(counts)} cores, more than {MOST_CORES}")
    tree = _uniform(levels, counts, text)
    return Tree(tree.levels, tree.paths, network)


def _lists(text: str) -> list[object]:
    try:
        groups: list[object] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LayoutError(f"topology {text[:60]!r} is not a valid JSON list", remedy=_FORMS) from error
    return groups


def _unknown(text: str, more: str = "") -> LayoutError:
    return LayoutError(f"{text[:60]!r} is not a topology{more}", remedy=_FORMS)


def _paths(groups: object, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yield the paths of the cores of nested lists; a number is a group of so many cores."""
    if isinstance(groups, int) and not isinstance(groups, bool) and groups > 0:
        yield from ((*path, core) for core in range(groups))
    elif isinstance(groups, list | tuple) and groups:
        if len(path) == _DEEPEST:
            raise LayoutError(f"the cores of a topology lie at most {_DEEPEST} levels deep", remedy=_FORMS)
        for number, inner in enumerate(groups):
            yield from _paths(inner, (*path, number))
    else:
        raise LayoutError(f"a topology consists of lists and numbers of cores, found {groups!r}", remedy=_FORMS)
