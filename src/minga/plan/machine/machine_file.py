"""The schema of machine files, and their reading: version 1 of the format ``"minga machine"``.

Quantities are numbers in SI units (seconds, bytes, bytes per second, cells per second) or text such as ``"50 us"``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from minga.errors import CaseError, LayoutError, Where, suggest
from minga.plan.links import HOP, Link, Segment
from minga.plan.machine.hwloc import read_hwloc
from minga.plan.machine.json_lines import line_of_key
from minga.plan.machine.machine import FORMAT, LEVELS, SHIPPED, VERSION, KernelSpeed, Machine, NodeKind
from minga.plan.machine.quantities import CellRate, Memory, Rate, Time
from minga.plan.machine.switches import NetworkSettings, SwitchSettings, network_of, switches_of
from minga.plan.speed import Speed
from minga.plan.topology import MOST_CORES, Tree
from minga.schema import validate

__all__ = ["json_schema", "machine_of", "read"]

_STRICT: Final = ConfigDict(extra="forbid", frozen=True)
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class SegmentSettings(BaseModel):
    """Messages of `least` bytes and more take alpha + beta * bytes seconds."""

    model_config = _STRICT

    least: Annotated[int, Field(ge=0, description="bytes of the smallest message of the segment")] = 0
    alpha: Annotated[float, Field(allow_inf_nan=False, description="seconds")]
    beta: Annotated[float, Field(ge=0, allow_inf_nan=False, description="seconds per byte")]


class LinkSettings(BaseModel):
    """The cost of a message: latency and bandwidth, or segments if protocols change with the size."""

    model_config = _STRICT

    latency: Annotated[Time | None, Field(description='of a short message, one way: "latency": "50 us"')] = None
    bandwidth: Annotated[Rate | None, Field(description='of long messages: "bandwidth": "100 Mb/s" or "11 MB/s"')] = (
        None
    )
    segments: Annotated[
        tuple[SegmentSettings, ...] | None,
        Field(min_length=1, description='instead of both: [{"least": 0, "alpha": 5e-5, "beta": 8e-9}, ...]'),
    ] = None
    overlap: Annotated[
        float, Field(ge=0, le=1, description="the share of a message's time that computation can hide, 0 to 1")
    ] = 1.0

    def link(self, key: str, where: str | None) -> Link:
        """Return the link for planners; raise CaseError if it is incomplete."""
        remedy = '{"latency": "50 us", "bandwidth": "1 Gb/s"}'
        if self.segments is not None:
            if self.latency is not None or self.bandwidth is not None:
                raise CaseError(
                    f"{key} has segments and also a latency or a bandwidth", key=key, where=where, remedy="keep one"
                )
            ascending = sorted(self.segments, key=lambda segment: segment.least)
            return Link(tuple(Segment(s.least, s.alpha, s.beta) for s in ascending), self.overlap)
        if self.latency is None or self.bandwidth is None:
            missing = "latency" if self.latency is None else "bandwidth"
            raise CaseError(
                f"{key!r} has no {missing}", key=f"{key}.{missing}", where=where, remedy=f"write both: {remedy}"
            )
        return Link((Segment(0, self.latency, 1 / self.bandwidth),), self.overlap)


class SpeedSettings(BaseModel):
    """The speed of one core for one kernel while all cores are busy: one number, or seconds of a step by cells."""

    model_config = _STRICT

    cells_per_second: Annotated[CellRate | None, Field(description='"1 Gcells/s", for every size')] = None
    cells: Annotated[list[Positive] | None, Field(min_length=1, description="cells of a core")] = None
    seconds: Annotated[list[Positive] | None, Field(min_length=1, description="seconds of a step of so many cells")] = (
        None
    )
    name: Annotated[str, Field(description="name of the kernel")] = ""
    samples: Annotated[list[list[Positive]], Field(description="all measured seconds per step, by size")] = []

    def speed(self, key: str, where: str | None) -> KernelSpeed:
        """Return the speed for planners; raise CaseError if it is incomplete."""
        if (self.cells_per_second is None) == (self.cells is None) or (self.cells is None) != (self.seconds is None):
            raise CaseError(
                f"{key!r} needs cells_per_second, or cells and seconds",
                key=key,
                where=where,
                remedy='write {"cells_per_second": "1 Gcells/s"} or {"cells": [1e4, 1e6], "seconds": [1e-5, 2e-3]}',
            )
        if self.cells is None or self.seconds is None:
            return KernelSpeed(Speed.constant(self.cells_per_second or 1.0), self.name)
        if len(self.cells) != len(self.seconds):
            raise CaseError(
                f"{key!r} has {len(self.cells)} cells and {len(self.seconds)} seconds",
                key=key,
                where=where,
                remedy="give one time for each size",
            )
        speed = Speed.measured(self.cells, self.seconds)
        return KernelSpeed(speed, self.name, tuple(self.cells), tuple(map(tuple, self.samples)))


class TreeSettings(BaseModel):
    """The cores of a node as nested lists with names of their levels."""

    model_config = _STRICT

    levels: Annotated[
        tuple[Literal["chip", "NUMA", "cache", "L3", "L2", "core"], ...],
        Field(min_length=1, description='levels of the lists, the outermost first: ["chip", "L3", "core"]'),
    ]
    groups: Annotated[Any, Field(description="nested lists of numbers of cores: [[4, 4], [4, 4]]")]


SpeedEntry = Annotated[
    SpeedSettings,
    BeforeValidator(
        lambda value: value if isinstance(value, Mapping) else {"cells_per_second": value},
        json_schema_input_type=float | str | SpeedSettings,
    ),
]


class NodeSettings(BaseModel):
    """Nodes of one kind."""

    model_config = _STRICT

    name: Annotated[str, Field(description='name of the nodes: "name": "old"')] = ""
    count: Annotated[int | None, Field(ge=1, description='number of nodes: "count": 4')] = None
    hosts: Annotated[tuple[str, ...], Field(description="host names of the nodes, instead of count")] = ()
    cores: Annotated[int | None, Field(ge=1, le=MOST_CORES, description='cores of one node: "cores": 8')] = None
    topology: Annotated[
        str | tuple[Any, ...] | TreeSettings | None,
        Field(description='instead of cores: "2x32" chips and cores, nested lists, or a file of lstopo --of xml'),
    ] = None
    memory: Annotated[Memory | None, Field(description='of one node: "memory": "16 GB"')] = None
    cpu: Annotated[str, Field(description="model of the processor")] = ""
    speed: Annotated[
        CellRate | None, Field(description='of one core, for all other kernels: "speed": "1 Gcells/s"')
    ] = None
    speeds: Annotated[
        dict[str, dict[str, SpeedEntry]],
        Field(description='by device and kernel: {"cpu": {"laplace": "2 Gcells/s"}}'),
    ] = {}
    bandwidth: Annotated[Rate | None, Field(description='of the memory, for all cores: "bandwidth": "20 GB/s"')] = None
    core_bandwidth: Annotated[Rate | None, Field(description='of the memory, for one core: "12 GB/s"')] = None
    link: Annotated[LinkSettings | None, Field(description="to the network, if it differs from links")] = None

    def kind(self, number: int, where: str | None, folder: Path) -> NodeKind:
        """Return the kind of nodes for planners; raise CaseError if it contradicts itself."""
        key = f"nodes[{number}]"
        if self.count is not None and self.hosts and self.count != len(self.hosts):
            raise CaseError(
                f"{key} has count {self.count}, but {len(self.hosts)} hosts",
                key=f"{key}.count",
                where=where,
                remedy="leave count out",
            )
        speeds = {
            device: {kernel: entry.speed(f"{key}.speeds.{device}.{kernel}", where) for kernel, entry in kernels.items()}
            for device, kernels in self.speeds.items()
        }
        if self.speed is not None:
            speeds.setdefault("cpu", {}).setdefault("*", KernelSpeed(Speed.constant(self.speed)))
        return NodeKind(
            name=self.name or (self.hosts[0] if self.hosts else f"node{number}"),
            count=self.count or len(self.hosts) or 1,
            cores=self._tree(key, where, folder),
            speeds=speeds,
            memory=None if self.memory is None else int(self.memory),
            cpu=self.cpu,
            hosts=self.hosts,
            bandwidth=self.bandwidth,
            core_bandwidth=self.core_bandwidth,
            link=None if self.link is None else self.link.link(f"{key}.link", where),
        )

    def _tree(self, key: str, where: str | None, folder: Path) -> Tree:
        if (self.cores is None) == (self.topology is None):
            raise CaseError(
                f"{key} has {'neither cores nor a' if self.cores is None else 'cores and also a'} topology",
                key=f"{key}.cores",
                where=where,
                remedy='write "cores": 8, or "topology": "2x4" for two chips of 4 cores',
            )
        try:
            if self.topology is None:
                return Tree.parse(f"1x{self.cores}")
            if isinstance(self.topology, TreeSettings):
                return Tree.nested([self.topology.groups], ("node", *self.topology.levels))
            if isinstance(self.topology, str) and self.topology.endswith(".xml"):
                return read_hwloc(folder / self.topology)
            if isinstance(self.topology, str) and not self.topology.lstrip().startswith("["):
                return Tree.parse(f"1x{self.topology.strip()}")
            groups = json.loads(self.topology) if isinstance(self.topology, str) else list(self.topology)
            return Tree.nested([groups])
        except (LayoutError, ValueError) as error:
            if isinstance(error, LayoutError) and error.where is not None:
                raise  # it is about a separate file
            raise CaseError(
                f"{key}.topology: {self.topology!r} is not the topology of a node",
                key=f"{key}.topology",
                where=where,
                remedy='write "2x4" for two chips of 4 cores, or nested lists of numbers of cores, [[2, 2], [4]]',
            ) from error


class MachineSettings(BaseModel):
    """A machine file."""

    model_config = _STRICT | ConfigDict(title="Machine description of minga")

    format: Annotated[Literal["minga machine"], Field(description='"format": "minga machine"')]
    version: Annotated[int, Field(description='"version": 1')]
    name: Annotated[str, Field(description="name of the machine")] = ""
    nodes: Annotated[
        tuple[NodeSettings, ...], Field(min_length=1, description='a list: [{"count": 4, "cores": 2, "speed": 1e9}]')
    ]
    links: Annotated[
        dict[str, LinkSettings],
        Field(description='by what they connect: {"inter-node": {"latency": "50 us", "bandwidth": "1 Gb/s"}}'),
    ] = {}
    switches: Annotated[
        SwitchSettings | str | None,
        Field(description='groups of nodes: {"levels": ["rack"], "groups": [4, 4]}, or a "topology.conf" of Slurm'),
    ] = None
    network: Annotated[
        NetworkSettings | None, Field(description='distances of nodes on a network without switches: {"torus": [4, 4]}')
    ] = None
    medium: Annotated[
        Literal["switch", "hub"], Field(description="pairs of nodes send at the same time (switch) or in turn (hub)")
    ] = "switch"
    measured: Annotated[dict[str, Any], Field(description="time and method of the measurement, and all samples")] = {}


def read(path: Path) -> Machine:
    """Read the machine in a file, or the shipped one of this name; raise CaseError if it is invalid."""
    if not path.exists() and path.suffix == "" and path.parent == Path():
        shipped = {file.stem: file for file in sorted(SHIPPED.glob("*.json"))}
        if path.name not in shipped:
            raise CaseError(
                f"there is no machine {str(path)!r}: neither a file nor one that ships with minga",
                suggestion=suggest(path.name, shipped),
                remedy=f"measure one (minga measure -o machine.json), or name one of {', '.join(shipped)}",
            )
        path = shipped[path.name]
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text, parse_constant=_refuse)
    except OSError as error:
        raise CaseError(f"the machine file {path} cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise CaseError(
            f"the machine file is not valid JSON: {error.msg}",
            where=(str(path), error.lineno),
            remedy='see docs/machines.md; text needs "double quotes", and lists have no trailing comma',
        ) from None
    except (ValueError, RecursionError) as error:
        raise CaseError(f"the machine file {path} is not valid JSON: {error}") from None
    try:
        return machine_of(data, str(path))
    except CaseError as error:
        if error.key is not None and error.where == str(path) and (line := line_of_key(text, error.key)):
            error.where = Where(str(path), line)
        raise


def machine_of(data: object, source: str = "") -> Machine:
    """Return the machine that plain data describe; raise CaseError with the key of an invalid entry."""
    where, folder = source or None, Path(source).parent
    if not isinstance(data, dict) or data.get("format", FORMAT) != FORMAT:
        found = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise CaseError(
            f"this is not a machine file: expected an object with format {FORMAT!r}, found {found!r}",
            key="format",
            where=where,
            remedy=f'begin it with {{"format": "{FORMAT}", "version": {VERSION}, "nodes": [...]}}',
        )
    version = data.get("version")
    if isinstance(version, int) and version != VERSION:
        raise CaseError(
            f"the machine file has version {version}; this minga reads version {VERSION}",
            key="version",
            where=where,
            remedy="update minga, or measure the machine again" if version > VERSION else "measure the machine again",
        )
    try:
        settings = validate(MachineSettings, data, thing="a machine file")
    except CaseError as error:
        error.where = error.where or where
        raise
    nodes = tuple(node.kind(number, where, folder) for number, node in enumerate(settings.nodes))
    names = [name for kind in nodes for name in kind.names]
    if settings.switches is not None and settings.network is not None:
        raise CaseError("both switches and a network are given", key="network", where=where, remedy="keep one of them")
    if settings.medium == "hub" and settings.switches is not None:
        raise CaseError(
            "nodes at a hub have no switches between them", key="medium", where=where, remedy="keep one of them"
        )
    switches = None if settings.switches is None else switches_of(settings.switches, names, where, folder)
    machine = Machine(
        nodes=nodes,
        links={name: link.link(f"links.{name}", where) for name, link in settings.links.items()},
        name=settings.name,
        shared=settings.medium == "hub",
        measured=settings.measured,
        data=data,
        source=source,
        switches=switches,
        network=None if settings.network is None else network_of(settings.network, len(names), where),
        hop=HOP if settings.network is None else settings.network.hop,
    )
    known = {f"{side}-{level}" for level in ("node", *LEVELS) for side in ("inter", "intra")}
    known |= {f"inter-{level}" for level in (switches.levels if switches is not None else ())}
    for name in machine.links:
        if name not in known:
            raise CaseError(
                f"there is no link {name!r}",
                key=f"links.{name}",
                suggestion=suggest(name, known),
                where=where,
                remedy=f"the links of this machine are {', '.join(machine.tree_relations[:-1])}, intra-node",
            )
    machine.check()
    return machine


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of machine files."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **MachineSettings.model_json_schema()}


def tree_settings(tree: Tree) -> dict[str, Any]:
    """Return the cores of a node as `topology` of a file: names of levels and nested lists."""
    return {"levels": list(tree.levels[1:]), "groups": _nested(tree.paths[:, 1:])}


def _nested(paths: np.ndarray) -> Any:
    if paths.shape[1] == 1:
        return len(paths)
    return [_nested(paths[paths[:, 0] == group, 1:]) for group in np.unique(paths[:, 0])]


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not a number in JSON")
