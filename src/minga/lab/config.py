"""Description of a lab in a TOML file: nodes with CPU shares, memory and links, and the wiring between them."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from minga.case.files import SHIPPED
from minga.errors import CaseError, suggest
from minga.plan.machine.units import Kind, quantity
from minga.schema import validate

__all__ = ["MOST_NODES", "Lab", "LabNode", "labs", "read_lab"]

MOST_NODES: Final = 250
"""Maximum number of nodes, as many as fit into one network, 10.77.0.0/24."""

ETHERNET: Final = 1500
"""Bytes that a frame of Ethernet carries."""

_BUSY: Final = 0.9
"""Fraction of the cores that all nodes together may use; the rest is for the network, a hub and measurements."""

_NAME = r"^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$"


@dataclass(frozen=True, slots=True)
class LabNode:
    """A node of a lab.

    ``share`` is in units of one CPU core; ``memory`` is in bytes, None for no limit; ``rate`` is that of the node's
    link in bit/s, None for the rate of the lab.

    Parameters
    ----------
    name
        The name.
    share
        The share of one CPU core.
    memory
        Bytes; None is no limit.
    rate
        bit/s of its line; None is the rate of the lab.
    switch
        The name of the switch to which its line leads.
    """

    name: str
    share: float = 1.0
    memory: int | None = None
    rate: float | None = None
    switch: str = ""


@dataclass(frozen=True, slots=True)
class Lab:
    """Description of a virtual cluster.

    Times are in seconds; ``loss``, ``duplicate`` and ``reorder`` are probabilities for each frame. ``rate`` (bit/s)
    applies to the links of nodes that set no rate; with ``wiring`` "hub" it is the rate of the medium that all nodes
    share. ``period`` is that of the CPU quotas: a node that has used up its share of a period waits for the next one.
    ``scale`` multiplies the shares, see :meth:`shares`. ``socket_buffer`` is the largest number of bytes that TCP
    buffers for a connection, in each direction; None leaves the limit to the system. ``frame`` is the largest number of
    bytes that a frame carries; the kernel plays each frame on the nodes' cores, so large ones cost them less.

    Parameters
    ----------
    name
        The name.
    nodes
        The nodes.
    wiring
        ``"switch"`` or ``"hub"``.
    rate
        bit/s of lines without a rate of their own, or of the hub.
    latency
        Seconds.
    uplink
        Seconds that frames between two switches take longer.
    loss, duplicate, reorder
        Probabilities of a frame to be lost, duplicated or reordered.
    seed
        The seed of these draws.
    period
        The period of CPU quotas, in seconds.
    scale
        A factor of all shares; None: chosen by :meth:`factor`.
    socket_buffer
        The most bytes that TCP keeps for a connection, each way; None: as the system has it.
    frame
        The most bytes that a frame carries.
    """

    name: str
    nodes: tuple[LabNode, ...]
    wiring: Literal["switch", "hub"] = "switch"
    rate: float | None = None
    latency: float = 0.0
    uplink: float = 0.0
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    seed: int = 0
    period: float = 5e-3
    scale: float | None = None
    socket_buffer: int | None = None
    frame: int = ETHERNET

    @property
    def rates(self) -> tuple[float | None, ...]:
        """Rate of each node's link in bit/s; None means no limit."""
        return tuple(self.rate if node.rate is None else node.rate for node in self.nodes)

    @property
    def switches(self) -> tuple[int, ...]:
        """Number of the switch of each node."""
        names = list(dict.fromkeys(node.switch for node in self.nodes))
        return tuple(names.index(node.switch) for node in self.nodes)

    @property
    def in_user_space(self) -> bool:
        """True if frames pass through :mod:`minga.lab.hub` instead of the kernel's bridge."""
        return self.wiring == "hub" or any((self.latency, self.uplink, self.loss, self.duplicate, self.reorder))

    def factor(self, cores: float) -> float:
        """Return the factor that multiplies the shares on a machine with ``cores`` cores.

        This is ``scale`` if it is set; otherwise 1 if the shares fit into 0.9 of the cores, and less if they do not.

        Parameters
        ----------
        cores
            Cores of the machine.

        Returns
        -------
        float
            The factor.
        """
        if self.scale is not None:
            return self.scale
        return min(1.0, _BUSY * cores / sum(node.share for node in self.nodes))

    def shares(self, cores: float) -> tuple[float, ...]:
        """Return the cores that each node gets on a machine with ``cores`` cores, in the ratios of the description.

        Parameters
        ----------
        cores
            Cores of the machine.

        Returns
        -------
        tuple of float
            Cores of each node.
        """
        factor = self.factor(cores)
        return tuple(node.share * factor for node in self.nodes)

    def as_dict(self) -> dict[str, Any]:
        """Return the description as JSON-serialisable data, which :meth:`from_dict` reads.

        Returns
        -------
        dict
            Plain data.
        """
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Lab:
        """Return the lab that :meth:`as_dict` wrote.

        Parameters
        ----------
        data
            The result of :meth:`as_dict`.

        Returns
        -------
        Lab
            The lab.
        """
        return cls(**{**data, "nodes": tuple(LabNode(**node) for node in data["nodes"])})


def labs() -> dict[str, Path]:
    """Return the files of the labs that ship with minga, by name."""
    return {path.stem: path for path in sorted((SHIPPED / "labs").glob("*.toml"))}


def read_lab(target: str | Path) -> Lab:
    """Read a lab from a TOML file, or a lab that ships with minga by its name: ``read_lab("three-ages")``.

    Parameters
    ----------
    target
        The name or the file.

    Returns
    -------
    Lab
        The lab.

    Raises
    ------
    CaseError
        If the file cannot be read or is invalid; the error names the key, the line and what was expected.
    """
    path = _file(target)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise CaseError(f"{path} cannot be read: {why}") from error
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else len(text.splitlines())  # "at end of document"
        raise CaseError(f"not valid TOML: {error}", where=(str(path), line), remedy="correct the file there") from error
    try:
        return _lab(validate(_LabSettings, data, thing="a lab"), path.stem)
    except CaseError as error:
        if error.where is None:
            error.where = str(path) if error.key is None else f"{path}:{_line(text, error.key)}".removesuffix(":0")
        raise


def _file(target: str | Path) -> Path:
    path = Path(target)
    if path.is_file():
        return path
    shipped = labs()
    if str(target) in shipped:
        return shipped[str(target)]
    beside = [str(p) for p in path.parent.glob("*.toml") if p.is_file()] if path.parent.is_dir() else []
    raise CaseError(
        f"there is no lab {str(target)!r}: neither a file nor one that ships with minga",
        suggestion=suggest(str(target), [*shipped, *beside]),
        remedy=f"name a TOML file, or one of {', '.join(shipped)}",
    )


# Schema ---------------------------------------------------------------------------------------------------------------
def _quantity(kind: Kind, example: str, factor: float = 1.0) -> BeforeValidator:
    def read(value: object) -> float:
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                return quantity(value, kind) * factor
        raise ValueError(f'a quantity with its unit, such as "{example}"')

    return BeforeValidator(read)


_Rate = Annotated[float, _quantity("rate", "100 Mb/s", 8.0), Field(ge=1e3, le=1e12)]
_Size = Annotated[float, _quantity("memory", "512 MB")]
_Time = Annotated[float, _quantity("time", "5 ms"), Field(ge=0, le=60)]
_Probability = Annotated[float, Field(ge=0, le=1)]


class _NodeSettings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(pattern=_NAME, description="lower-case letters, digits and '-', as in host names")]
    share: Annotated[float, Field(gt=0, le=4096, description="share of one CPU core: 0.5, or 2.0 for two cores")] = 1.0
    memory: Annotated[
        Annotated[_Size, Field(ge=1 << 20, le=1 << 60)] | None,
        Field(description='memory of the node, from "1 MiB" to "1 EiB": memory = "512 MB"'),
    ] = None
    rate: Annotated[
        _Rate | None, Field(description='rate of its link, from "1 kb/s" to "1000 Gb/s": rate = "10 Mb/s"')
    ] = None
    switch: Annotated[str, Field(pattern=_NAME, description='the switch to which its line leads: switch = "a"')] = ""
    count: Annotated[int, Field(ge=1, le=MOST_NODES, description="number of nodes of this kind")] = 1


class _LabSettings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str | None, Field(pattern=_NAME, description="lower-case letters, digits and '-'")] = None
    wiring: Annotated[
        Literal["switch", "hub"], Field(description='"switch": a line for each node; "hub": one medium for all')
    ] = "switch"
    rate: Annotated[
        _Rate | None, Field(description='rate of the links, from "1 kb/s" to "1000 Gb/s": rate = "100 Mb/s"')
    ] = None
    latency: Annotated[_Time, Field(description='delay added to each frame, at most "60 s": latency = "0.5 ms"')] = 0.0
    uplink: Annotated[
        _Time, Field(description='delay of frames between switches in addition, at most "60 s": uplink = "1 ms"')
    ] = 0.0
    loss: Annotated[_Probability, Field(description="probability that a frame is lost")] = 0.0
    duplicate: Annotated[_Probability, Field(description="probability that a frame arrives twice")] = 0.0
    reorder: Annotated[_Probability, Field(description="probability that a frame is overtaken by later ones")] = 0.0
    seed: Annotated[int, Field(ge=0, description="seed of the random loss, duplication and reordering")] = 0
    period: Annotated[
        Annotated[_Time, Field(ge=1e-3, le=1.0)],
        Field(description='period of the CPU quotas, "1 ms" to "1 s": a node may pause that long during its work'),
    ] = 5e-3
    scale: Annotated[
        Literal["auto"] | Annotated[float, Field(gt=0, le=4096)],
        Field(description='factor of all shares; "auto": less than 1 only if they exceed the available cores'),
    ] = "auto"
    socket_buffer: Annotated[
        Annotated[_Size, Field(ge=4096, le=1 << 30)] | None,
        Field(description='limit of TCP buffers for a connection, each way, from "4 KiB" to "1 GiB": "16 KiB"'),
    ] = None
    frame: Annotated[
        int, Field(ge=ETHERNET, le=9000, description="bytes that a frame carries, 1500 to 9000 (jumbo frames)")
    ] = ETHERNET
    nodes: Annotated[
        list[_NodeSettings], Field(min_length=1, description='a table for each kind of node: [[nodes]] name = "fast"')
    ]


def _lab(settings: _LabSettings, stem: str) -> Lab:
    values = settings.model_dump(exclude={"nodes", "name", "scale", "socket_buffer"})
    buffer = None if settings.socket_buffer is None else round(settings.socket_buffer)
    nodes = tuple(node for kind in settings.nodes for node in _nodes(kind))
    name = settings.name or re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-") or "lab"
    lab = Lab(name=name, nodes=nodes, scale=None if settings.scale == "auto" else settings.scale,
        socket_buffer=buffer, **values)  # fmt: skip
    _check(lab, settings)
    return lab


def _nodes(kind: _NodeSettings) -> list[LabNode]:
    names = [kind.name] if kind.count == 1 else [f"{kind.name}-{number + 1}" for number in range(kind.count)]
    memory = None if kind.memory is None else round(kind.memory)
    return [LabNode(name, kind.share, memory, kind.rate, kind.switch) for name in names]


def _check(lab: Lab, settings: _LabSettings) -> None:
    """Raise CaseError for faults that concern several keys together."""
    if len(lab.nodes) > MOST_NODES:
        raise CaseError(f"{len(lab.nodes)} nodes, but a lab has at most {MOST_NODES}", key="nodes")
    names = [node.name for node in lab.nodes]
    if twice := next((name for name in names if names.count(name) > 1), None):
        number = max((n for n, kind in enumerate(settings.nodes) if kind.name == twice), default=0)
        raise CaseError(
            f"two nodes have the name {twice!r}",
            key=f"nodes[{number}].name",
            remedy="rename one of them, or use count = 2",
        )
    if "localhost" in names:
        raise CaseError("a node cannot be called 'localhost'", key=f"nodes[{names.index('localhost')}].name")
    if lab.uplink and len(set(lab.switches)) < 2:
        raise CaseError(
            "there is one switch, and no uplink between switches",
            key="uplink",
            remedy='name the switches of nodes: switch = "a" in one table of [[nodes]], switch = "b" in another',
        )
    if lab.in_user_space and lab.frame != ETHERNET:
        raise CaseError(
            f"frames of {lab.frame} bytes pass through a switch of the kernel only",
            key="frame",
            remedy='leave it out, or use wiring = "switch" without latency, loss, duplicate and reorder',
        )
    if lab.wiring == "hub":
        if lab.uplink:
            raise CaseError("a hub has no switches between its nodes", key="uplink", remedy='write wiring = "switch"')
        for number, kind in enumerate(settings.nodes):
            if kind.rate is not None:
                raise CaseError(
                    "a hub is one medium, with one rate for all nodes",
                    key=f"nodes[{number}].rate",
                    remedy='remove it, and set rate beside wiring = "hub"',
                )


def _line(text: str, key: str) -> int:
    """Return the line, from 1, that sets ``key`` (``nodes[1].share``), else that begins its table; 0 for neither."""
    entry = re.match(r"nodes\[(\d+)\]", key)
    wanted = int(entry[1]) if entry else -1
    last = re.sub(r"\[\d+\]", "", key.rsplit(".", 1)[-1])
    number, found = -1, 0
    for place, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*\[\[?\s*nodes\s*\]", line):
            number += 1
            found = place if number == max(wanted, 0) and key.startswith("nodes") else found
        elif number == wanted and re.match(rf"\s*[\"']?{re.escape(last)}[\"']?\s*=", line):
            return place
    return found
