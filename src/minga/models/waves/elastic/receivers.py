"""Receivers of elastic waves: pressure, velocities and stresses at points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.errors import CaseError
from minga.models.waves.boundary import Pairs
from minga.models.waves.domain import Domain
from minga.models.waves.elastic.layout import Component
from minga.models.waves.elastic.places import place_component
from minga.models.waves.interpolation import check_point
from minga.models.waves.receivers import Receivers, Taps
from minga.space.field import Field, Register

__all__ = ["check_quantities", "record_quantities"]


def check_quantities(quantities: Sequence[str], components: Mapping[str, Component]) -> None:
    """Raise CaseError unless all quantities can be recorded.

    Parameters
    ----------
    quantities
        "p", or names of components.
    components
        Components of the waves by name.
    """
    known = ("p", *components)
    wrong = [name for name in quantities if name not in known]
    if isinstance(quantities, str) or wrong or not quantities:
        raise CaseError(
            f"receivers record {quantities!r}",
            key="elastic.record",
            remedy=f"give a list of one or more of {', '.join(known)}",
        )


def record_quantities(
    observe: Program,
    receivers: Receivers,
    quantities: Sequence[str],
    components: Mapping[str, Component],
    fields: Mapping[str, Field],
    domain: Domain,
    faces: Pairs,
) -> tuple[Register, ...]:
    """Record the sampling of quantities in a Program; return the registers, quantity after quantity.

    Parameters
    ----------
    observe
        The Program.
    receivers
        The receivers.
    quantities
        "p", minus the mean of the normal stresses, or names of components.
    components
        Components of the waves by name.
    fields
        Fields by name.
    domain
        Domain of the waves.
    faces
        Boundaries of all faces.
    """
    points = [check_point(p, domain, receivers.interpolation, "receiver") for p in receivers.positions]
    normal = [name for name, c in components.items() if c.normal]
    parts = [normal if name == "p" else [name] for name in quantities]
    taps = {
        name: Taps.of(
            [place_component(p, components[name], domain, faces, receivers.interpolation, "receiver") for p in points]
        )
        for name in dict.fromkeys(name for names in parts for name in names)
    }
    registers = [tuple(Register(f"receivers.{q}.{k}") for k in range(len(points))) for q in quantities]

    def sample_receivers(engine: Engine) -> None:
        found = {name: each.sample(engine, fields[name]) for name, each in taps.items()}
        for quantity, names, targets in zip(quantities, parts, registers, strict=True):
            values = found[names[0]]
            for name in names[1:]:
                values = values + found[name]
            if quantity == "p":
                values = values / -len(names)
            for register, value in zip(targets, values.tolist(), strict=True):
                engine.write(register, value)

    for name, each in taps.items():
        if each.reach:
            observe.refresh(fields[name], each.reach)
    observe.call(sample_receivers, reads=tuple(fields[name] for name in taps))
    return tuple(register for each in registers for register in each)
