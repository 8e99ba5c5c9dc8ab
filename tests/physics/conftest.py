"""What tests of physics share: where they keep the numbers that they compare."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .evidence import Evidence


@pytest.fixture
def evidence(request: pytest.FixtureRequest) -> Evidence:
    """What this test finds, kept where the environment's VERIFICATION says."""
    directory = os.environ.get("VERIFICATION")
    test = f"{request.path.name}::{request.node.name}"
    return Evidence(test, Path(directory).absolute() if directory else None)
