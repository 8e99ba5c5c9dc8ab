"""Results of shipped cases have the bits that are stored, on any processor and any number of ranks."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from minga.case.examples import examples
from minga.compile.target import missing_features
from thinned import thinned

DIGESTS = Path(__file__).parents[2] / "scripts" / "digests.py"
SCRIPT = runpy.run_path(str(DIGESTS), run_name="digests")
STORED = json.loads(SCRIPT["STORED"].read_text())


def test_every_shipped_case_is_stored() -> None:
    assert sorted(STORED) == sorted(examples())


@pytest.mark.few(2)
@pytest.mark.parametrize("name", thinned(sorted(examples()), "heat", "si-1", "wireworld"))
@pytest.mark.parametrize("ranks", [2])
def test_results_have_the_stored_bits(name: str, ranks: int) -> None:
    assert SCRIPT["digest_of"](name, ranks) == STORED[name]


PLAIN_NUMPY = {
    "NPY_DISABLE_CPU_FEATURES": " ".join(name for name in __cpu_dispatch__ if __cpu_features__[name]),
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA,-FMA4",
}
"""NumPy and the C library without the instructions that only some processors have."""
PLAIN_BLAS = {"OPENBLAS_CORETYPE": "Prescott"}
PROCESSORS = {
    "numpy": PLAIN_NUMPY, "blas": PLAIN_BLAS, "avx2": {"OPENBLAS_CORETYPE": "Haswell", "MINGA_TARGET": "x86-64-v3"},
    "sse2": {**PLAIN_NUMPY, **PLAIN_BLAS, "MINGA_TARGET": "x86-64"},
}  # fmt: skip
PROGRAM = """
import runpy, sys
script = runpy.run_path(sys.argv[1], run_name="digests")
for name in sys.argv[2:]:
    print(name, script["digest_of"](name, 1))
"""


def digests_on(processor: dict[str, str], names: list[str]) -> dict[str, str]:
    """Digests of shipped cases in a process that takes this processor for an older one."""
    command = [sys.executable, "-c", PROGRAM, str(DIGESTS), *names]
    done = subprocess.run(command, env={**os.environ, **processor}, stdout=subprocess.PIPE, text=True, check=True)
    return dict(line.split() for line in done.stdout.splitlines())


@pytest.mark.slow
def test_a_processor_without_extensions_has_the_same_bits() -> None:
    """A plate that is as warm as a sine, and a cell whose faces lie as a cosine."""
    names = ["heat", "pnp-1d"]
    assert digests_on({**PLAIN_NUMPY, **PLAIN_BLAS}, names) == {name: STORED[name] for name in names}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("processor", PROCESSORS)
def test_other_processors_have_the_same_bits(processor: str) -> None:
    level = PROCESSORS[processor].get("MINGA_TARGET")
    lacking = missing_features(level) if level else []
    if lacking:
        pytest.skip(f"this processor has no {', '.join(lacking)}")
    assert digests_on(PROCESSORS[processor], sorted(STORED)) == STORED
