"""Names for packages that extend minga: see docs/extending.md."""

from __future__ import annotations

from minga.case.quantities import Metres, Quantity, Seconds, Volts
from minga.case.settings import GridSettings
from minga.case.spec import ModelSpec
from minga.engine.routes import Route
from minga.errors import CaseError
from minga.output.directory import write_whole
from minga.output.export import Export, ExportFormat
from minga.running.observer_spec import ObserverSpec
from minga.schema import validate

__all__ = [
    "CaseError",
    "Export",
    "ExportFormat",
    "GridSettings",
    "Metres",
    "ModelSpec",
    "ObserverSpec",
    "Quantity",
    "Route",
    "Seconds",
    "Volts",
    "validate",
    "write_whole",
]


def __dir__() -> list[str]:
    return sorted(__all__)
