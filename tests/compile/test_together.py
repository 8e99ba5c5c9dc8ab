"""Many kernels compiled side by side: the same objects as one by one, and no failure that a run would notice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from minga.compile import together
from minga.compile.cache import Cache
from minga.compile.jit import object_code
from minga.compile.llvm import compile_kernel, key_of, print_llvm
from minga.compile.target import Target, host_target
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


def missing(cache: Cache) -> list[KernelGraph]:
    return [graph for graph in GRAPHS if key_of(graph, host_target(), reductions=False) not in cache]


def all_kernels() -> list[tuple[KernelGraph, bool]]:
    return [(graph, False) for graph in GRAPHS]


@pytest.mark.slow
def test_objects_are_those_of_one_process(cache: Cache) -> None:
    assert compile_together([*all_kernels(), (GRAPHS[0], False)], 2) == LEAST
    for graph in GRAPHS[:3]:
        assert cache.load(key_of(graph, host_target(), reductions=False)) == object_code(
            print_llvm(graph, reductions=False), host_target()
        )
    assert all(compile_kernel(graph, reductions=False, cache=cache).cached for graph in GRAPHS)
    assert compile_together(all_kernels(), 2) == 0, "nothing is missing any more"


def test_few_kernels_and_one_core_need_no_other_process(cache: Cache) -> None:
    assert compile_together(all_kernels()[1:], 2) == 0
    assert compile_together(all_kernels(), 1) == 0
    assert missing(cache) == GRAPHS


def test_without_a_cache_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINGA_CACHE", "off")
    assert compile_together(all_kernels(), 2) == 0


@pytest.mark.few(2)
@pytest.mark.parametrize("python", ["false", "/nowhere/python", ""])
def test_processes_that_fail_leave_kernels_to_the_run(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, python: str
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    compile_together(all_kernels(), 2)
    assert missing(cache)
    assert compile_kernel(GRAPHS[0], reductions=False, cache=cache).address


@pytest.mark.slow
def test_a_kernel_that_cannot_be_compiled_is_left_out(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = together.print_llvm

    def broken(graph: KernelGraph, **options: Any) -> str:
        return "no IR" if graph is GRAPHS[0] else printed(graph, **options)

    monkeypatch.setattr(together, "print_llvm", broken)
    compile_together(all_kernels(), 2)
    assert missing(cache) == [GRAPHS[0]]


@pytest.mark.slow
def test_without_room_for_objects_at_most_one_is_compiled_in_vain(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = []

    def counted(ir: str, target: Target) -> bytes:
        compiled.append(ir)
        return object_code(ir, target)

    monkeypatch.setattr(together, "object_code", counted)
    monkeypatch.setattr(Cache, "store", lambda *_: False)
    compile_together(all_kernels(), 2)
    assert len(compiled) == 1


@pytest.mark.slow
def test_modules_of_the_working_directory_are_not_ours(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    for name in ("pickle.py", "numpy.py", "llvmlite.py"):
        (tmp_path / "work" / name).write_text("raise SystemExit(1)\n")
    monkeypatch.chdir(tmp_path / "work")
    compile_together(all_kernels(), 2)
    assert missing(cache) == []


def test_a_worker_whose_parent_is_gone_stops() -> None:
    program = f"""
import os, pickle
from minga.compile import worker
worker.perform = lambda jobs, *_: print(*jobs)
read, write = os.pipe()
os.write(write, pickle.dumps(({list(range(100))}, None, None)))
os.close(write)
os.dup2(read, 0)
parents = iter([7, 7, 7, 1])
os.getppid = lambda: next(parents)
worker.main()
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["0", "1"]
