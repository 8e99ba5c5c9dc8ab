"""Labs in tests: what this machine permits, and a state of their own for each test."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from minga.errors import LaunchError
from minga.lab.cluster import lab_rights
from missing import missing


@pytest.fixture(scope="session")
def rights() -> dict[str, Any]:
    """What `up` and `laboratory` are to be told here. Skips where labs cannot be made; as root with the tools never."""
    tools = shutil.which("ip") and shutil.which("tc")
    try:
        found = lab_rights()
    except LaunchError as error:
        if os.geteuid() == 0 and tools:
            raise
        pytest.skip(missing(error))
    if os.geteuid() == 0:
        return {"rootless": False, "quota": True}
    return {"rootless": found.rootless, "quota": found.version > 0}


@pytest.fixture
def quotas(rights: dict[str, Any]) -> None:
    """For tests of shares and memory limits: skips where this user has no control groups."""
    if not rights["quota"]:
        pytest.skip("needs control groups: run the tests as root, or have some delegated to you (docs/lab.md)")


@pytest.fixture
def own_labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Labs of this test alone: it neither sees nor removes those of others."""
    place = tmp_path / "labs"
    monkeypatch.setenv("MINGA_LAB_STATE", str(place))
    return place
