"""The processor that code is compiled for: its name and features as LLVM spells them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import llvmlite.binding as llvm

from minga.compile.caches import UNKNOWN, second_cache
from minga.errors import LaunchError

_VARIABLE: Final = "MINGA_TARGET"
_AVOID_GATHER: Final = "+prefer-no-gather,+prefer-no-scatter"
"""LLVM's tuning for x86: accesses with a stride as loads and shuffles. With gathers and scatters, red-black loops were
a third as fast, and restrictions two thirds (Zen 4); they are also slow on processors whose microcode guards them."""


_HALVES: Final = ("znver4",)
"""Processors with AVX-512 whose units are 256 bits wide."""

_BEFORE_TILES: Final = (
    *("skylake-avx512", "cascadelake", "cooperlake", "cannonlake"),
    *("icelake-client", "icelake-server", "tigerlake", "rocketlake"),
)
"""Intel's processors with AVX-512 and without AMX."""


@dataclass(frozen=True, slots=True)
class Target:
    """A processor. Equal targets make equal code; results have the same bits on all of them.

    Attributes
    ----------
    triple, cpu, features
        The processor in LLVM's terms.
    fma
        True if it multiplies and adds with a single rounding (needed by `mg.fma` only).
    rounding
        True if floor, ceil, trunc and rint are instructions (otherwise they are spelled out).
    lanes
        Width of its vectors in bytes.
    cache
        Bytes of its last-level cache; the stores of larger boxes bypass the caches.
    second
        Bytes of its L2 cache.
    halves
        True if it computes the widest vectors in two halves.
    """

    triple: str
    cpu: str
    features: str
    fma: bool
    rounding: bool
    lanes: int = 16
    cache: int = 32 << 20
    second: int = UNKNOWN
    halves: bool = False

    def machine(self) -> llvm.TargetMachine:
        """Return LLVM's code generator for this processor: position independent, no contraction of a * b + c."""
        initialize()
        return llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=3, reloc="pic", codemodel="small"
        )


@functools.cache
def initialize() -> None:
    """Initialize LLVM's native back end, once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def host_target() -> Target:
    """Return the processor this process runs on, or the level of x86-64 that ``MINGA_TARGET`` names.

    Raises
    ------
    LaunchError
        If the variable names no level, or one that this processor does not have.
    """
    return _chosen(os.environ.get(_VARIABLE, "").lower())


@functools.cache
def _chosen(name: str) -> Target:
    host = _host()
    if name in ("", "native"):
        return host
    if name not in _LEVELS:
        raise LaunchError(
            f"{_VARIABLE} is {name!r}", remedy=f"set {_VARIABLE} to native or one of {', '.join(_LEVELS)}"
        )
    lacking = missing_features(name)
    if lacking:
        raise LaunchError(
            f"{_VARIABLE} is {name!r}, but this processor ({host.cpu}) lacks {', '.join(lacking)}",
            remedy=f"unset {_VARIABLE}: kernels are then compiled for this processor",
        )
    return replace(_LEVELS[name](), cache=host.cache, second=host.second)


def missing_features(level: str) -> list[str]:
    """Name the instructions of a level of x86-64 that this processor does not have."""
    initialize()
    present = llvm.get_host_cpu_features()
    if not llvm.get_process_triple().startswith("x86_64"):
        return ["the x86-64 instruction set"]
    return [feature for feature in _FEATURES[level] if not present.get(feature)]


@functools.cache
def _host() -> Target:
    """Return the processor this process runs on."""
    initialize()
    features = llvm.get_host_cpu_features()
    triple = llvm.get_process_triple()
    x86 = triple.startswith(("x86_64", "i686"))
    return Target(
        triple,
        processor_name(),
        features.flatten() + (f",{_AVOID_GATHER}" if x86 else ""),
        fma=not x86 or bool(features.get("fma")),
        rounding=not x86 or bool(features.get("sse4.1")),
        cache=_last_cache(),
        second=second_cache(),
        lanes=64 if features.get("avx512bw") else 32 if features.get("avx2") else 16,
        halves=processor_name() in _HALVES,
    )


@functools.cache
def processor_name() -> str:
    """Return LLVM's name of this processor, or of the first with its instructions if the named one lacks them.

    LLVM goes by the model number, which some virtual machines fake: a server with AMX was called rocketlake.
    """
    initialize()
    name = llvm.get_host_cpu_name()
    return "sapphirerapids" if name in _BEFORE_TILES and llvm.get_host_cpu_features().get("amx-tile") else name


def _last_cache() -> int:
    """Return the bytes of the largest cache that the system reports; 32 MiB if it reports none."""
    try:
        sizes = [os.sysconf(f"SC_LEVEL{level}_CACHE_SIZE") for level in (2, 3)]
    except (AttributeError, ValueError, OSError):
        sizes = []
    return max([size for size in sizes if size > 0], default=32 << 20)


def baseline_target() -> Target:
    """Return the target for any 64-bit x86 processor (SSE2)."""
    return Target("x86_64-unknown-linux-gnu", "x86-64", _AVOID_GATHER, fma=False, rounding=False)


def v3_target() -> Target:
    """Return the target x86-64-v3: AVX2 and FMA, for processors since 2013-2015."""
    return Target("x86_64-unknown-linux-gnu", "x86-64-v3", _AVOID_GATHER, fma=True, rounding=True, lanes=32)


def v4_target() -> Target:
    """Return the target x86-64-v4: AVX-512, for Intel's servers since 2017 and AMD's processors since 2022."""
    return Target("x86_64-unknown-linux-gnu", "x86-64-v4", _AVOID_GATHER, fma=True, rounding=True, lanes=64)


_LEVELS: Final[Mapping[str, Callable[[], Target]]] = {
    "x86-64": baseline_target,
    "x86-64-v3": v3_target,
    "x86-64-v4": v4_target,
}
_V3: Final = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_FEATURES: Final[Mapping[str, tuple[str, ...]]] = {
    "x86-64": (),
    "x86-64-v3": _V3,
    "x86-64-v4": (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}
"""Features that each level has beyond the first one (System V ABI, x86-64 psABI, section 3.1.1)."""
