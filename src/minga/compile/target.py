"""The processor that code is made for: its name and features as LLVM spells them."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import Final

import llvmlite.binding as llvm

_AVOID_GATHER: Final = "+prefer-no-gather,+prefer-no-scatter"
"""LLVM's tuning for x86: accesses with a stride as loads and shuffles. Gathers and scatters made red-black loops a
third as fast, and restrictions two thirds (Zen 4), and are slow wherever microcode guards them."""


@dataclass(frozen=True, slots=True)
class Target:
    """A processor. Equal targets make equal code; results have the same bits on all of them.

    fma       it multiplies and adds with one rounding (needed by `mg.fma` only)
    rounding  it has floor, ceil, trunc and rint as instructions (otherwise they are spelled out)
    lanes     bytes of its vectors
    cache     bytes of its last cache: boxes that hold more are stored past the caches
    vector    bits of the vectors that LLVM should use; 0 leaves the choice to LLVM
    """

    triple: str
    cpu: str
    features: str
    fma: bool
    rounding: bool
    lanes: int = 16
    cache: int = 32 << 20
    vector: int = 0

    def machine(self) -> llvm.TargetMachine:
        """LLVM's code generator for this processor: position independent, no contraction of a * b + c."""
        initialize()
        return llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=3, reloc="pic", codemodel="small"
        )


@functools.cache
def initialize() -> None:
    """Make LLVM's native back end ready, once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@functools.cache
def host_target() -> Target:
    """The processor this process runs on."""
    initialize()
    features = llvm.get_host_cpu_features()
    triple = llvm.get_process_triple()
    x86 = triple.startswith(("x86_64", "i686"))
    return Target(
        triple,
        llvm.get_host_cpu_name(),
        features.flatten() + (f",{_AVOID_GATHER}" if x86 else ""),
        fma=not x86 or bool(features.get("fma")),
        rounding=not x86 or bool(features.get("sse4.1")),
        cache=_last_cache(),
        lanes=64 if features.get("avx512bw") else 32 if features.get("avx2") else 16,
    )


def _last_cache() -> int:
    """Bytes of the largest cache that the system names; 32 MiB if it names none."""
    try:
        sizes = [os.sysconf(f"SC_LEVEL{level}_CACHE_SIZE") for level in (2, 3)]
    except (AttributeError, ValueError, OSError):
        sizes = []
    return max([size for size in sizes if size > 0], default=32 << 20)


def baseline_target() -> Target:
    """Any 64-bit x86 processor (SSE2)."""
    return Target("x86_64-unknown-linux-gnu", "x86-64", _AVOID_GATHER, fma=False, rounding=False)


def v3_target() -> Target:
    """x86-64-v3: AVX2 and FMA, the processors since 2013-2015."""
    return Target("x86_64-unknown-linux-gnu", "x86-64-v3", _AVOID_GATHER, fma=True, rounding=True, lanes=32)
