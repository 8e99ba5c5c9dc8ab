"""What packages that add to minga build with: see docs/extending.md."""

from __future__ import annotations

from minga.errors import CaseError
from minga.models.settings import GridSettings
from minga.models.spec import ModelSpec
from minga.schema import validate

__all__ = ["CaseError", "GridSettings", "ModelSpec", "validate"]
