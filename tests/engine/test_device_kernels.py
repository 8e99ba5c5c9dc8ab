"""The engine's own kernels for a GPU: assembled by NVIDIA's assembler, and run by the machine for PTX."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from minga.compile.exact import ExactSum, empty_accumulator
from minga.engine.device import HELPERS
from minga.engine.device_kernels import helper_launch, helper_ptx
from minga.engine.helpers import Finish, finish_args
from ptx_assembler import report_on
from ptx_device import PtxDevice


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_they_assemble_without_memory_of_their_own(arch: str, tmp_path: Path) -> None:
    said = report_on(helper_ptx(arch), arch, tmp_path, 3)
    for name in HELPERS:
        assert f"'gpu_{name}' for '{arch}'" in said
    assert said.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == len(HELPERS)
