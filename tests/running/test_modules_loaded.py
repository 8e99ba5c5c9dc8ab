"""A serial run loads no module that it does not use: GPU, SEG-Y, MPI, satellites, other models."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import minga

FORBIDDEN = (
    r"minga\.compile\.ptx\w*",
    r"minga\.engine\.(gpu|cupy_device|cuda_driver|device_fields|device_kernels|mpi_handles)",
    r"minga\.output\.(segy|netcdf\w*|vtk\w*|vtr|xdmf|rsf)",
    r"minga\.(network|lab|studies|launch|solve)(\..*)?",
    r"minga\.api",
    r"mpi4py(\..*)?|cupy(\..*)?|scipy(\..*)?",
)
MODELS = r"minga\.models\.(automaton|electrodeposition|matmul|photodiode|waves)(\..*)?"

HEAT = """
import minga as mg


@mg.kernel
def diffuse(u, new):
    new[0, 0] = u[0, 0] + 0.2 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


grid = mg.Grid((16, 16))
u = mg.Field("u", grid, slots=2, boundary=mg.fixed(0.0))
step = mg.Program("step")
step.apply(diffuse, u, u.next)
step.rotate(u)
mg.run(mg.Model("heat", grid, (u,), step), 2)
"""

LIFE = """
from minga.cli.main import app

app(
    ["run", "life", "-n", "1", "--set", "run.steps=2", "--set", "grid.shape=[64, 64]"]
    + ["--set", "output.pictures=0", "--set", "output.report=false"],
    standalone_mode=False,
)
"""


def modules_of(code: str, directory: Path) -> set[str]:
    """Return the names of all modules that are loaded after a piece of code ran in a process of its own."""
    code += "\nimport sys\nprint('MODULES', *sys.modules)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=directory)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("MODULES")[2].split())


def loaded(modules: set[str], patterns: tuple[str, ...]) -> list[str]:
    return sorted(name for name in modules if any(re.fullmatch(pattern, name) for pattern in patterns))


@pytest.mark.slow
def test_a_run_in_python_loads_only_what_it_uses(tmp_path: Path) -> None:
    modules = modules_of(HEAT, tmp_path)
    assert "minga.running.run" in modules
    assert loaded(modules, (*FORBIDDEN, MODELS)) == []


def test_the_version_of_the_distribution_loads_nothing_else(tmp_path: Path) -> None:
    modules = modules_of("import minga; print(minga.__version__)", tmp_path)
    assert {name for name in modules if name.startswith("minga") or name == "numpy"} == {"minga"}
    assert minga.__version__ == version("minga")


HELP = """
from minga.cli.main import app

app(["--help"], standalone_mode=False)
"""


def test_help_loads_no_more_than_the_declarations_of_commands(tmp_path: Path) -> None:
    modules = modules_of(HELP, tmp_path)
    assert "minga.network.measuring.cli.command" in modules
    assert loaded(modules, (r"numpy|pydantic|llvmlite", r"minga\.(engine|plan|case|output|running)\..*")) == []


def test_a_run_of_an_example_loads_only_what_it_uses(tmp_path: Path) -> None:
    modules = modules_of(LIFE, tmp_path)
    assert "minga.models.automaton.model" in modules
    patterns = [pattern for pattern in FORBIDDEN if "launch" not in pattern]
    satellites = r"minga\.(network|lab|studies|solve)(\..*)?"
    assert loaded(modules, (*patterns, satellites, MODELS.replace("automaton|", ""))) == []


@pytest.mark.parametrize("name", ["minga.engine.gpu", "minga.compile.ptx_map", "minga.lab", "minga.lab.cluster"])
def test_a_module_that_should_not_be_there_is_noticed(name: str) -> None:
    assert loaded({"minga", name}, FORBIDDEN) == [name]
