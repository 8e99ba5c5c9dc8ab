"""The object cache: found again, never believed blindly, never in the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga.compile.llvm
from minga import kernel
from minga.compile.cache import LOOKED_AFTER, SUFFIX, Cache, default_cache, object_key
from minga.compile.call import run_kernel
from minga.compile.llvm import Compiled, compile_kernel
from minga.compile.numpy import BoundArray
from minga.compile.target import baseline_target, host_target, v3_target
from minga.lang import functions as mg

from .helpers import traced


@kernel
def double(u: Any, new: Any) -> None:
    new[0] = 2 * u[0]


GRAPH = traced(double, 1, ["f8", "f8"])


def works(compiled: Compiled) -> bool:
    u, new = np.arange(10.0), np.zeros(10)
    run_kernel(compiled, ((0,), (10,)), [BoundArray(u, (0,)), BoundArray(new, (0,))])
    return bool((new == 2 * u).all())


def only_file(directory: Path) -> Path:
    (path,) = directory.glob(f"*{SUFFIX}")
    return path


def test_an_object_is_found_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    first, second = compile_kernel(GRAPH, cache=cache), compile_kernel(GRAPH, cache=cache)
    assert not first.cached
    assert second.cached
    assert works(first)
    assert works(second)
    assert not compile_kernel(GRAPH, cache=None).cached


def test_a_file_says_what_it_is(tmp_path: Path) -> None:
    compiled = compile_kernel(GRAPH, cache=Cache(tmp_path))
    about = json.loads(only_file(tmp_path).read_bytes().split(b"\n", 2)[1])
    assert about == {"key": compiled.key, "kernel": "double", "cpu": host_target().cpu}


CHILD = """
import sys
import minga.compile.llvm as llvm
from tests.compile.test_cache import GRAPH, works
if sys.argv[1] == "forbid":
    def object_code(*_):
        raise AssertionError("compiled")
    llvm.object_code = object_code
assert works(llvm.compile_kernel(GRAPH))
"""


def child(directory: Path, mode: str) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    environment = os.environ | {"MINGA_CACHE": str(directory), "PYTHONPATH": str(root)}
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, mode], env=environment, stderr=subprocess.PIPE, text=True, cwd=root
    )


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    with child(tmp_path, "compile") as first:
        assert first.communicate()[1] == ""
    with child(tmp_path, "forbid") as second:
        assert second.communicate()[1] == ""
        assert second.returncode == 0
    with child(tmp_path / "empty", "forbid") as third:
        assert "AssertionError: compiled" in third.communicate()[1]


@pytest.mark.slow
def test_processes_share_a_directory(tmp_path: Path) -> None:
    """All start with nothing, and write the same file at the same time."""
    processes = [child(tmp_path / "new" / "directory", "compile") for _ in range(2)]
    for process in processes:
        with process:
            assert process.communicate()[1] == ""
            assert process.returncode == 0
    assert [path.suffix for path in (tmp_path / "new" / "directory").iterdir()] == [SUFFIX]


@pytest.mark.few(2)
@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty", "checksum", "directory"])
def test_damaged_files_are_replaced(tmp_path: Path, damage: str) -> None:
    cache = Cache(tmp_path)
    key = compile_kernel(GRAPH, cache=cache).key
    path = only_file(tmp_path)
    content = path.read_bytes()
    if damage == "directory":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(
            {
                "flipped": content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
                "truncated": content[: len(content) // 2],
                "empty": b"",
                "checksum": (b"1" if content[:1] == b"0" else b"0") + content[1:],
            }[damage]
        )
    assert cache.load(key) is None
    again = compile_kernel(GRAPH, cache=cache)
    assert not again.cached
    assert works(again)
    if damage != "directory":
        assert cache.load(key) is not None


def test_an_object_of_another_key_is_not_taken(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    compile_kernel(GRAPH, cache=cache)
    only_file(tmp_path).rename(tmp_path / f"other{SUFFIX}")
    assert cache.load("other") is None


def test_a_directory_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    cache = Cache(file / "objects")
    assert not cache.store("key", b"code")
    compiled = compile_kernel(GRAPH, cache=cache)
    assert not compiled.cached
    assert works(compiled)


def test_a_full_disk_leaves_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert not Cache(tmp_path).store("key", b"code")
    assert list(tmp_path.iterdir()) == []


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=10_000)
    keys = [f"key{number}{LOOKED_AFTER}" for number in range(10)]
    for age, key in enumerate(keys):
        if age == 8:
            assert cache.load(keys[0]) is not None
        cache.store(key, bytes(1000))
        time.sleep(0.01)
    sizes = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert sizes <= 10_000
    assert cache.load(keys[0]) is not None, "it was used a moment ago"
    assert cache.load(keys[1]) is None
    assert cache.load(keys[9]) is not None


def test_few_objects_have_the_size_looked_at(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=1000)
    for number in range(3):
        cache.store(f"{number}1", bytes(1000))
    assert len(list(tmp_path.iterdir())) == 3
    cache.store(f"4{LOOKED_AFTER}", b"")
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1000


def test_kernels_that_differ_in_names_share_an_object(tmp_path: Path) -> None:
    """Of the kernel, of fields, scalars and reductions; not those that take scalars in turn."""

    @kernel
    def scaled(u: Any, new: Any, *, a: Any, b: Any) -> Any:
        new[0] = a * u[0] - b
        return {"largest": mg.max(u[0])}

    @kernel
    def other(v: Any, out: Any, *, c: Any, d: Any) -> Any:
        out[0] = c * v[0] - d
        return {"most": mg.max(v[0])}

    @kernel
    def swapped(v: Any, out: Any, *, c: Any, d: Any) -> Any:
        out[0] = d * v[0] - c
        return {"most": mg.max(v[0])}

    cache = Cache(tmp_path)
    found = [
        compile_kernel(traced(item, 1, ["f8", "f8"], dict.fromkeys(scalars, "f8")), cache=cache)
        for item, scalars in ((scaled, "ab"), (other, "cd"), (swapped, "cd"))
    ]
    assert [item.cached for item in found] == [False, True, False]
    assert found[0].source == found[1].source != found[2].source
    assert found[0].graph.digest() != found[1].graph.digest()


def test_the_key_names_all_that_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {
        object_key("a", v3_target(), ""),
        object_key("b", v3_target(), ""),
        object_key("a", baseline_target(), ""),
        object_key("a", v3_target(), "other"),
    }
    assert len(keys) == 4
    monkeypatch.setattr("llvmlite.__version__", "another")
    assert object_key("a", v3_target(), "") not in keys


def test_the_directory_is_the_users_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINGA_CACHE", str(tmp_path / "mine"))
    assert default_cache() == Cache(tmp_path / "mine")
    compile_kernel(GRAPH)
    assert only_file(tmp_path / "mine").exists()
    monkeypatch.setenv("MINGA_CACHE", "off")
    assert default_cache() is None
    assert works(minga.compile.llvm.compile_kernel(GRAPH))
    monkeypatch.delenv("MINGA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "theirs"))
    if sys.platform == "linux":
        assert default_cache() == Cache(tmp_path / "theirs" / "minga" / "objects")


def test_what_others_may_have_written_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object is code: a file of another user, or one that everybody may write, counts as none."""
    cache = Cache(tmp_path)
    assert cache.store("1", b"code")
    file = tmp_path / "1.object"
    file.chmod(0o666)
    assert cache.load("1") is None
    file.chmod(0o664)
    assert cache.load("1") == b"code"
    own = file.stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: own + 1)
    assert cache.load("1") == (b"code" if own == 0 else None)
    if own == 0:
        try:
            os.chown(file, 4321, -1)
        except OSError:
            return  # no such user can be had here
        assert cache.load("1") is None
