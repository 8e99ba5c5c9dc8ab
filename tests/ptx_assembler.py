"""NVIDIA's assembler: whether it takes PTX, and what it says of registers."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

PTXAS = Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "bin" / "ptxas"


def assemble(modules: dict[str, str], arch: str, folder: Path, level: int) -> dict[str, str]:
    """What ptxas, at an optimisation level, reports of each kernel; all are assembled as one file, which is faster."""
    bodies = []
    for number, ptx in enumerate(modules.values()):
        body = ptx[ptx.index(".address_size") :].partition("\n")[2]
        bodies.append(re.sub(r"\b(kernel|constant)(?=\(|_param|\d+\b)", rf"\g<1>{number}_", body))
    header = next(iter(modules.values())).split("\n\n")[1]
    said = report_on(header + "\n" + "\n".join(bodies), arch, folder, level)
    reports = re.split(r"Compiling entry function 'kernel(\d+)_'", said)
    by_number = dict(zip(map(int, reports[1::2]), reports[2::2], strict=True))
    return {name: by_number[number] for number, name in enumerate(modules)}


def report_on(ptx: str, arch: str, folder: Path, level: int) -> str:
    """What ptxas reports of a module, which it must take."""
    if not PTXAS.exists():
        assert sys.platform != "linux", "ptxas is missing: it comes with nvidia-cuda-nvcc of the extra dev (make setup)"
        pytest.skip("ptxas is to be had on Linux only: pip install nvidia-cuda-nvcc there")
    path = folder / "kernels.ptx"
    path.write_text(ptx)
    done = subprocess.run(
        [PTXAS, "-v", f"-O{level}", "-arch", arch, path, "-o", folder / "kernels.cubin"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def registers(report: str) -> int:
    """Registers of a thread, of a kernel that keeps all that it needs in them."""
    assert "stack frame, 0 bytes spill stores, 0 bytes spill loads" in report, report
    used = re.search(r"Used (\d+) registers", report)
    assert used
    return int(used[1])
