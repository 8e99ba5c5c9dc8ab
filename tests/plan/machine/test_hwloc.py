"""Topologies as hwloc writes them: versions 1 and 2, memory nodes beside or around caches, processors of others."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from minga.errors import CaseError, LayoutError
from minga.plan.machine.hwloc import read_hwloc
from minga.plan.machine.machine import read_machine
from minga.plan.topology import Tree

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'


def mask(cpus: Iterable[int]) -> str:
    """Processors as hwloc writes a set of them: words of 32 bits, the highest first."""
    bits = sum(1 << cpu for cpu in cpus)
    words = [f"0x{bits >> 32 * n & 0xFFFFFFFF:08x}" for n in range(bits.bit_length() // 32 + 1)]
    return ",".join(reversed(words))


def thing(kind: str, cpus: Iterable[int], inside: str = "", **more: object) -> str:
    attributes = "".join(f' {key}="{value}"' for key, value in more.items())
    return f'<object type="{kind}" cpuset="{mask(cpus)}"{attributes}>{inside}</object>'


def core(*cpus: int) -> str:
    units = "".join(thing("PU", [cpu], os_index=cpu) for cpu in cpus)
    return thing("L2Cache", cpus, thing("L1Cache", cpus, thing("Core", cpus, units)))


def version_2(allowed: Iterable[int] | None = None) -> str:
    """Two packages of 8 cores with two hardware threads each, two memory nodes in each, an L3 for every two cores."""
    packages = ""
    for package in range(2):
        memory = ""
        for numa in range(2):
            first = 8 * package + 4 * numa
            cpus = [*range(first, first + 4), *range(16 + first, 20 + first)]
            caches = "".join(
                thing("L3Cache", [c, c + 1, c + 16, c + 17], core(c, c + 16) + core(c + 1, c + 17))
                for c in (first, first + 2)
            )
            memory += thing("Group", cpus, thing("NUMANode", cpus, os_index=numa) + caches)
        cpus = [*range(8 * package, 8 * package + 8), *range(16 + 8 * package, 24 + 8 * package)]
        packages += thing("Package", cpus, memory)
    own = {} if allowed is None else {"allowed_cpuset": mask(allowed)}
    return HEAD + f'<topology version="2.0">{thing("Machine", range(32), packages, **own)}</topology>'


def written(folder: Path, text: str) -> Path:
    file = folder / "machine.xml"
    file.write_text(text)
    return file


def test_version_2(tmp_path: Path) -> None:
    tree = read_hwloc(written(tmp_path, version_2()))
    assert tree.levels == ("node", "chip", "NUMA", "L3", "core")
    assert len(tree) == 16  # hardware threads are no cores
    assert tree.common(0, 1) == 4
    assert tree.common(0, 2) == 3
    assert tree.common(0, 4) == 2
    assert tree.common(0, 8) == 1


def test_processors_that_may_not_be_used_are_left_out(tmp_path: Path) -> None:
    tree = read_hwloc(written(tmp_path, version_2(allowed=[0, 1, 2, 3, 16, 17, 18, 19])))
    assert tree.levels == ("node", "L3", "core")  # one chip and one memory node divide nothing
    assert len(tree) == 4


def test_version_1(tmp_path: Path) -> None:
    """Memory nodes are parents, caches have a depth, and sets have more than 32 processors."""
    sockets = ""
    for socket in range(2):
        cores = ""
        for number in range(20):
            cpu = 20 * socket + number
            unit = thing("PU", [cpu], os_index=cpu)
            inside = thing("Core", [cpu], thing("Cache", [cpu], unit, depth=1, cache_type=2))
            cores += thing("Cache", [cpu], inside, depth=2, cache_type=0)
        cpus = range(20 * socket, 20 * socket + 20)
        cache = thing("Cache", cpus, cores, depth=3, cache_type=0)
        sockets += thing("NUMANode", cpus, thing("Socket", cpus, cache))
    text = HEAD + f"<topology>{thing('Machine', range(40), sockets)}</topology>"
    tree = read_hwloc(written(tmp_path, text))
    assert tree.levels == ("node", "chip", "core")
    assert len(tree) == 40
    assert tree.paths[:, 1].tolist() == [0] * 20 + [1] * 20


def test_without_cores_every_processor_is_one(tmp_path: Path) -> None:
    units = "".join(thing("PU", [cpu], os_index=cpu) for cpu in range(4))
    tree = read_hwloc(written(tmp_path, f"<topology>{thing('Machine', range(4), units)}</topology>"))
    assert tree.levels == ("node", "core")
    assert len(tree) == 4


def test_a_word_of_a_case_may_name_a_file(tmp_path: Path) -> None:
    file = written(tmp_path, version_2())
    assert len(Tree.parse(str(file))) == 16


def test_a_machine_file_may_name_one_beside_it(tmp_path: Path) -> None:
    written(tmp_path, version_2())
    nodes = [{"topology": "machine.xml", "speed": 1e9}]
    (tmp_path / "m.json").write_text(json.dumps({"format": "minga machine", "version": 1, "nodes": nodes}))
    assert read_machine(tmp_path / "m.json").levels == ("node", "chip", "NUMA", "L3", "core")
    (tmp_path / "machine.xml").write_text("<html/>")
    with pytest.raises((CaseError, LayoutError), match="topology of hwloc"):
        read_machine(tmp_path / "m.json")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not valid XML"),
        ("<topology>", "not valid XML"),
        ("<html></html>", "topology of hwloc"),
        ("<topology></topology>", "topology of hwloc"),
        ('<topology><object type="Machine"/></topology>', "no processors"),
        ('<?xml version="1.0" encoding="klingon"?><topology/>', "not valid XML"),
    ],
)
def test_what_is_no_topology_is_explained(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match=words) as raised:
        read_hwloc(written(tmp_path, text))
    assert "machine.xml" in str(raised.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match="cannot be read"):
        Tree.parse(str(tmp_path / "no.xml"))
