"""Results of shipped cases have the bits that are stored, on any processor and any number of ranks."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from minga.case.examples import examples
from thinned import thinned

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "digests.py"), run_name="digests")
STORED = json.loads(SCRIPT["STORED"].read_text())


def test_every_shipped_case_is_stored() -> None:
    assert sorted(STORED) == sorted(examples())


@pytest.mark.parametrize("name", thinned(sorted(examples()), "heat", "si-1", "wireworld"))
@pytest.mark.parametrize("ranks", [2])
def test_results_have_the_stored_bits(name: str, ranks: int) -> None:
    assert SCRIPT["digest_of"](name, ranks) == STORED[name]
