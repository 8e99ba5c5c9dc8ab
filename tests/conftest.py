"""What all tests share: reproducible property tests, a private object cache, pictures without a screen."""

from __future__ import annotations

import gc
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from minga.compile.target import missing_features
from thinned import leave_few

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

# A shell that starts a command in the background has it ignore Ctrl-C, and so would every process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has it ignored


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--target",
        default="native",
        choices=["native", "x86-64", "x86-64-v3", "x86-64-v4"],
        help="compile kernels for a level of x86-64: x86-64 (SSE2), x86-64-v3 (AVX2), x86-64-v4 (AVX-512)",
    )
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in a random order")


def pytest_configure(config: pytest.Config) -> None:
    """Keep a person's settings out of the tests, and choose the processor that kernels are compiled for."""
    for name in [name for name in os.environ if name.startswith("MINGA_")]:
        del os.environ[name]
    os.environ["MINGA_TARGET"] = config.getoption("--target")
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ["MINGA_WAIT"] = "patient"  # ranks that tests start here share the cores with other tests


def shares_a_fixture(item: pytest.Item) -> bool:
    """Whether a test uses what the tests of its module share."""
    known = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    return any(definitions[-1].scope == "module" for definitions in known.values())


@pytest.hookimpl(wrapper=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Put the tests in the order that was asked for; skip them where this processor lacks the instructions."""
    leave_few(items)
    seed = config.getoption("--shuffle")
    if seed is not None:
        random.Random(seed).shuffle(items)
    for item in items:
        if "mpi" in item.keywords:  # one worker starts all ranks, from the beginning, while the others do the rest
            item.add_marker(pytest.mark.xdist_group("mpi"))
        elif shares_a_fixture(item):  # which every worker would make anew
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    items.sort(key=lambda item: "mpi" not in item.keywords)
    level = config.getoption("--target")
    lacking = missing_features(level) if level != "native" else []
    if lacking:
        for item in items:
            item.add_marker(pytest.mark.skip(f"--target {level} needs {', '.join(lacking)}: use another processor"))
    gc.freeze()  # the thousands of tests and all modules, which live to the end
    gc.set_threshold(50_000, 20, 20)
    yield
    grouped = [item for item in items if item.get_closest_marker("xdist_group")]
    if getattr(config.option, "loadgroup", False) and not all("@" in item.nodeid for item in grouped):
        raise pytest.UsageError("pytest-xdist does not group tests with this pytest; install the locked versions")


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
        yield


_STATES: dict[tuple[str, str], Any] = {}


@pytest.fixture(autouse=True)
def same_numbers(request: pytest.FixtureRequest) -> None:
    """Give each test the same random numbers from its module's generators, whichever tests ran before."""
    for name, value in vars(request.module).items():
        if isinstance(value, np.random.Generator):
            first = _STATES.setdefault((request.module.__name__, name), value.bit_generator.state)
            value.bit_generator.state = first


@pytest.fixture
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the test in an empty directory, where whatever it leaves is visible."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let Programs call Python functions that native code replaces on the processor; return the labels of the calls."""
    from minga.engine import bind
    from minga.engine.compiled_call import CompiledCall

    called: list[str] = []
    monkeypatch.setattr(bind, "Host", type("NoHost", (), {}))
    original = CompiledCall.__call__

    def noting(self: CompiledCall, engine: Any) -> None:
        called.append(self.label)
        original(self, engine)

    monkeypatch.setattr(CompiledCall, "__call__", noting)
    return called
