"""Many kernels compiled side by side: the same objects as one by one, and no failure that a run would notice."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from minga.compile import together
from minga.compile.cache import Cache, object_key
from minga.compile.jit import object_code
from minga.compile.llvm import compile_kernel, options_of, print_llvm
from minga.compile.target import host_target
from minga.compile.together import LEAST, compile_together
from minga.lang.graph import KernelGraph
from minga.lang.kernel import Kernel, infer_signature


def graph_of(number: int) -> KernelGraph:
    def kernel(u: Any, new: Any) -> None:
        new[0, 0] = u[0, number] * float(number)

    return Kernel(kernel).graph(infer_signature(2, [("f8", range(2))] * 2))


GRAPHS = [graph_of(number) for number in range(LEAST)]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("MINGA_CACHE", str(tmp_path))
    return Cache(tmp_path)


def key_of(graph: KernelGraph) -> str:
    return object_key(graph.code_digest(), host_target(), options_of(reductions=False))


def all_kernels() -> list[tuple[KernelGraph, bool]]:
    return [(graph, False) for graph in GRAPHS]


def test_objects_are_those_of_one_process(cache: Cache) -> None:
    assert compile_together([*all_kernels(), (GRAPHS[0], False)], 2) == LEAST
    for graph in GRAPHS[:3]:
        assert cache.load(key_of(graph)) == object_code(print_llvm(graph, reductions=False), host_target())
    assert all(compile_kernel(graph, reductions=False, cache=cache).cached for graph in GRAPHS)
    assert compile_together(all_kernels(), 2) == 0, "nothing is missing any more"


def test_few_kernels_and_one_core_need_no_other_process(cache: Cache) -> None:
    assert compile_together(all_kernels()[1:], 2) == 0
    assert compile_together(all_kernels(), 1) == 0
    assert not any(key_of(graph) in cache for graph in GRAPHS)


def test_without_a_cache_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINGA_CACHE", "off")
    assert compile_together(all_kernels(), 2) == 0


@pytest.mark.parametrize("python", ["false", "/nowhere/python"])
def test_processes_that_fail_leave_kernels_to_the_run(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, python: str
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    compile_together(all_kernels(), 2)
    assert any(key_of(graph) not in cache for graph in GRAPHS)
    assert compile_kernel(GRAPHS[0], reductions=False, cache=cache).address


def test_a_kernel_that_cannot_be_compiled_is_left_out(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = together.print_llvm

    def broken(graph: KernelGraph, **options: Any) -> str:
        return "no IR" if graph is GRAPHS[0] else printed(graph, **options)

    monkeypatch.setattr(together, "print_llvm", broken)
    compile_together(all_kernels(), 2)
    assert [graph for graph in GRAPHS if key_of(graph) not in cache] == [GRAPHS[0]]
