"""What the machine code must and must not contain, for each class of kernels and each processor level."""

from __future__ import annotations

import functools
import itertools
import re
import struct
from typing import Any

import pytest

from minga import kernel
from minga.compile.jit import assembly, object_code
from minga.compile.llvm import print_llvm
from minga.compile.target import Target, host_target
from minga.lang import functions as mg
from minga.lang.cell import local
from minga.lang.expr import cast, fused_multiply_add, unary_float
from minga.lang.graph import KernelGraph
from thinned import thinned

from .helpers import targets, traced

X86 = host_target().triple.startswith("x86_64")
needs_x86 = pytest.mark.skipif(not X86, reason="the patterns name x86 instructions")


@kernel
def jacobi(u: Any, f: Any, new: Any) -> None:
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]) - f[0, 0] * u[0, 0]


@kernel
def life(c: Any, new: Any) -> None:
    alive = sum(c[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    new[0, 0] = mg.where((alive == 3) | ((alive == 2) & (c[0, 0] == 1)), 1, 0)


@kernel
def life_of_bools(c: Any, new: Any) -> None:
    alive = sum(cast(c[i, j], "i4") for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    new[0, 0] = (alive == 3) | ((alive == 2) & c[0, 0])


@kernel(order="red-black")
def red_black(u: Any, f: Any) -> None:
    u[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - f[0, 0])


@kernel(order={"y": 1})
def sweep(u: Any, f: Any) -> None:
    u[0, 0] = f[0, 0] - u[-1, 0] * f[-1, 0]


@kernel
def restrict(fine: Any, coarse: Any) -> None:
    own = fine.strided(2)
    coarse[0, 0] = 0.5 * own[0, 0] + 0.125 * (own[-1, 0] + own[1, 0] + own[0, -1] + own[0, 1])


@kernel
def limited(u: Any, new: Any) -> None:
    a, b = u[0, 1] - u[0, 0], u[0, 0] - u[0, -1]
    new[0, 0] = mg.where(a * b > 0, mg.where(abs(a) < abs(b), a, b), 0.0)


@kernel
def rotated(u: Any, new: Any) -> None:
    a = local(u[0, 1] - u[0, -1])
    new[0, 0] = a[1, 0] * u[0, 0] - a[-1, 0]


@kernel
def residual(u: Any, f: Any) -> dict[str, Any]:
    return {"max": mg.max(abs(u[0, 0] - f[0, 0])), "sum": mg.sum(u[0, 0] * f[0, 0]), "where": mg.argmax(u[0, 0])}


@kernel
def population(c: Any) -> dict[str, Any]:
    return {"alive": mg.count(c[0, 0] == 1)}


@kernel
def roundings(u: Any, new: Any) -> None:
    new[0, 0] = sum(unary_float(op, u[0, 0]) for op in ("floor", "ceil", "trunc", "rint")) + u[0, 0] // 2 + u[0, 0] % 3


@kernel
def integers(u: Any, v: Any, new: Any) -> None:
    new[0, 0] = mg.where(u[0, 0] > v[0, 0], u[0, 1] + v[0, 0] & 255, u[0, 0] ^ v[0, 0])


@kernel
def divisions(u: Any, v: Any, new: Any) -> None:
    new[0, 0] = u[0, 0] // v[0, 0] + u[0, 0] % v[0, 0] + (u[0, 0] << v[0, 0]) + cast(cast(u[0, 0], "f8"), "i4")


# Each with an instruction that its inner loop must have, on vectors of 128 bits (baseline) or more; none for red-black
# loops, whose strided stores are done one by one, and for divisions of integers, which x86 has for single numbers only.
CLASSES: dict[str, tuple[KernelGraph, str]] = {
    "jacobi f8": (traced(jacobi, 2, ["f8"] * 3), "addpd"),
    "jacobi f4": (traced(jacobi, 2, ["f4"] * 3), "addps"),
    "life u1": (traced(life, 2, ["u1"] * 2), "paddb"),
    "life bool": (traced(life_of_bools, 2, ["bool"] * 2), "paddb"),
    "red-black f8": (traced(red_black, 2, ["f8"] * 2), ""),
    "sweep along y": (traced(sweep, 2, ["f8"] * 2), "subpd"),
    "restriction f8": (traced(restrict, 2, ["f8"] * 2), "addpd"),
    "restriction f4": (traced(restrict, 2, ["f4"] * 2), "addps"),
    "limiter f8": (traced(limited, 2, ["f8"] * 2), "subpd"),
    "locals f4": (traced(rotated, 2, ["f4"] * 2), "subps"),
    "reductions f8": (traced(residual, 2, ["f8"] * 2), "(max|addpd)"),
    "reductions f4": (traced(residual, 2, ["f4"] * 2), "(max|addpd)"),
    "count": (traced(population, 2, ["u1"]), "paddb"),
    "roundings": (traced(roundings, 2, ["f8"] * 2), "(addpd|roundpd|rndscalepd)"),
    "integers": (traced(integers, 2, ["i4"] * 3), "paddd"),
    "divisions": (traced(divisions, 2, ["i4"] * 3), ""),
}


@functools.cache
def assembly_of(name: str, target: Target) -> str:
    return assembly(print_llvm(CLASSES[name][0], target=target), target)


EVERY = pytest.mark.parametrize("name", CLASSES)
TARGETS = targets()
EVERY_ON_EACH = pytest.mark.parametrize(
    ("name", "target"),
    thinned(
        itertools.product(CLASSES, TARGETS),
        *((name, TARGETS[number % len(TARGETS)]) for number, name in enumerate(CLASSES)),
    ),
    ids=lambda value: value.cpu if isinstance(value, Target) else value,
)
"""Every class on every target; the quick tests take one of the targets, in turn."""


@pytest.mark.few(4)
@EVERY_ON_EACH
@needs_x86
def test_loops_use_vectors(name: str, target: Target) -> None:
    instruction = CLASSES[name][1]
    if not instruction:
        return
    code = assembly_of(name, target)
    registers = "%[xyz]mm" if target.cpu == "x86-64" else "%[yz]mm"
    assert re.search(rf"\bv?\w*{instruction}\w*\s.*{registers}", code), f"no {instruction} on {registers} in\n{code}"


@needs_x86
def test_large_boxes_are_stored_past_the_caches() -> None:
    code = assembly(print_llvm(CLASSES["jacobi f8"][0]), host_target())
    assert re.search(r"movnt\w+\s", code)
    assert "sfence" in code


@pytest.mark.few(3)
@EVERY_ON_EACH
def test_no_contraction(name: str, target: Target) -> None:
    code = assembly_of(name, target)
    assert not re.search(r"\bv?f(n?m(add|sub|la|ls)\w*)\b", code)


@needs_x86
def test_fma_only_where_it_is_written() -> None:
    @kernel
    def fused(u: Any, new: Any) -> None:
        new[0] = fused_multiply_add(u[0], u[1], u[-1])

    host = host_target()
    if host.fma:
        assert "vfmadd" in assembly(print_llvm(traced(fused, 1, ["f8", "f8"])), host)


@pytest.mark.few(3)
@EVERY_ON_EACH
def test_no_undefined_symbols(name: str, target: Target) -> None:
    if target.triple.endswith("darwin"):
        pytest.skip("reads ELF files, as Linux has them; this machine makes Mach-O")
    code = object_code(print_llvm(CLASSES[name][0], target=target), target)
    assert undefined_symbols(code) <= {"memcpy", "memset"}


def test_undefined_symbols_are_seen() -> None:
    """The guard above can fail."""
    target = host_target()
    ir = f"""target triple = "{target.triple}"
    declare double @fmod(double, double)
    define double @kernel(double %a) {{
      %b = call double @fmod(double %a, double %a)
      ret double %b
    }}
    """
    assert undefined_symbols(object_code(ir, target)) == {"fmod"}


def undefined_symbols(code: bytes) -> set[str]:
    """Names in the symbol table of a 64-bit ELF object that have no section."""
    assert code[:5] == b"\x7fELF\x02"
    (sections,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    found: set[str] = set()
    for number in range(count):
        kind, link = struct.unpack_from("<4xI32xI", code, sections + number * size)[0:2]
        if kind != 2:
            continue
        start, length = struct.unpack_from("<24xQQ", code, sections + number * size)
        (names,) = struct.unpack_from("<24xQ", code, sections + link * size)
        for entry in range(start, start + length, 24):
            name, section = struct.unpack_from("<IxxH", code, entry)
            if name and not section:
                found.add(code[names + name : code.index(b"\0", names + name)].decode())
    return found


@pytest.mark.few(4)
@EVERY
def test_the_compiler_says_nothing(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    object_code(print_llvm(CLASSES[name][0]), host_target())
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize("order", ["lexicographic", {"x": 1}])
def test_ordered_loops_carry_no_parallel_metadata(order: Any) -> None:
    @kernel(order=order)
    def relax(u: Any) -> None:
        u[0, 0] = 0.5 * (u[0, -1] + u[0, 1])

    assert "parallel" not in print_llvm(traced(relax, 2, ["f8"]))
    assert "parallel" in print_llvm(CLASSES["jacobi f8"][0])


def test_ir_grows_with_the_graph_only() -> None:
    """Each node is printed once for vectors and once for cells, however often it is used; compile time follows."""

    def towers(height: int) -> KernelGraph:
        @kernel
        def tower(u: Any, new: Any) -> None:
            value = u[0]
            for _ in range(height):
                value = value * value + value
            new[0] = value

        return traced(tower, 1, ["f8", "f8"])

    lines = [len(print_llvm(towers(height)).splitlines()) for height in (150, 160, 500)]
    assert lines[1] - lines[0] == 2 * 20
    assert lines[2] - lines[1] == 2 * 680
