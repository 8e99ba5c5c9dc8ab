"""What all tests share: reproducible property tests, a private object cache, pictures without a screen."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every machine for `make test`; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("explore", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(autouse=True, scope="session")
def private_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the person's own caches and settings out of the tests, and the tests out of theirs.

    The caches live in one directory for all workers, so that kernels that many tests share are compiled once.
    """
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "cache"
    shared.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(shared))
        patch.setenv("MPLBACKEND", "Agg")
        for name in [name for name in os.environ if name.startswith("MINGA_")]:
            patch.delenv(name)
        yield


@pytest.fixture
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the test in an empty directory, where whatever it leaves is visible."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
