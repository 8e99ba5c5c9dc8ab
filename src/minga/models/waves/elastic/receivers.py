"""Receivers of elastic waves: pressure, velocities and stresses at points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from minga.errors import CaseError
from minga.models.waves.boundary import Pairs
from minga.models.waves.domain import Domain
from minga.models.waves.elastic.layout import Component
from minga.models.waves.elastic.places import place_component
from minga.models.waves.interpolation import check_point
from minga.models.waves.receivers import Receivers, Taps
from minga.models.waves.sensors import Recorded, Sensors
from minga.space.field import Field

__all__ = ["check_quantities", "check_receivers", "sensors_of"]


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
    listed = isinstance(quantities, list | tuple) and all(isinstance(name, str) for name in quantities)
    if not listed or not set(quantities) <= set(known) or not 0 < len(quantities) == len(set(quantities)):
        raise CaseError(
            f"receivers record {quantities!r}",
            key="elastic.record",
            remedy=f"give a list of one or more of {', '.join(known)}, each once",
        )


def check_receivers(receivers: object) -> None:
    """Raise CaseError for what are not receivers.

    Parameters
    ----------
    receivers
        What is given as receivers.
    """
    if not isinstance(receivers, Receivers):
        raise CaseError(
            f"the receivers are a {type(receivers).__name__}",
            key="elastic.receivers",
            remedy="give Receivers(...) of minga.models.waves",
        )


def sensors_of(
    receivers: Receivers,
    record: Sequence[str],
    components: Mapping[str, Component],
    fields: Mapping[str, Field],
    domain: Domain,
    faces: Pairs,
) -> Sensors:
    """Return what receivers record.

    Parameters
    ----------
    receivers
        The receivers.
    record
        Quantities: "p", minus the mean of the normal stresses, or names of components.
    components
        Components of the waves by name.
    fields
        Fields by name.
    domain
        Domain of the waves.
    faces
        Boundaries of all faces.

    Raises
    ------
    CaseError
        If a quantity is not known, or a receiver lies outside the model.
    """
    check_quantities(record, components)
    check_receivers(receivers)
    points = [
        check_point(point, domain, receivers.interpolation, "receiver", number)
        for number, point in enumerate(receivers.positions)
    ]
    normal = [name for name, c in components.items() if c.normal]
    parts = {name: normal if name == "p" else [name] for name in record}
    taps = {
        fields[name]: Taps.of(
            [place_component(p, components[name], domain, faces, receivers.interpolation, "receiver") for p in points]
        )
        for name in dict.fromkeys(name for names in parts.values() for name in names)
    }
    quantities = [
        Recorded(q, tuple(fields[name] for name in parts[q]), -float(len(normal)) if q == "p" else 1.0) for q in record
    ]
    return Sensors(tuple(quantities), taps)
