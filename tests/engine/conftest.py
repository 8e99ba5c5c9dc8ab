"""What several tests of active tiles share."""

from __future__ import annotations

import pytest

from thinned import thinned

from .active_runs import make_impatient


@pytest.fixture(params=thinned(["patient", "impatient"], "impatient"))
def patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Tiles are looked at where that is worth while, or always."""
    if request.param == "impatient":
        make_impatient(monkeypatch)
    return str(request.param)
