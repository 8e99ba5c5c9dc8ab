"""The hosts that get ranks, how many, and with which weights."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from command_line import SMALL, in_process
from minga.cli.case import read_case
from minga.cli.inputs import renamed
from minga.cli.stage import _files
from minga.cli.start import _seated, _weights, demand_of, ranks_here
from minga.errors import CaseError
from minga.launch.hosts import Host
from minga.output.directory import RunDirectory


@pytest.fixture(autouse=True)
def case(in_tmp_path: Path) -> None:
    """A small case, of 10 times 4096 cells, in the working directory."""
    Path("small.toml").write_text(SMALL.replace("ranks = 1\n", "").replace("[40, 64]", "[640, 64]"))


def seated(*hosts: Host, here: str = "", cores: int = 2, ranks: int | None = None, threads: int = 1) -> list[Any]:
    agents = [SimpleNamespace(host=host, here=host.name == here, facts={"cores": cores}) for host in hosts]
    case = read_case("small.toml", options={"run.threads": threads})
    return _seated(SimpleNamespace(each=agents), demand_of(case), ranks)  # type: ignore[arg-type]


def places(seats: list[Any]) -> list[tuple[str, int]]:
    return [(seat.host.name, seat.host.ranks) for seat in seats]


def test_this_machine_comes_first_and_is_started_without_ssh() -> None:
    seats = seated(Host("a", 2), Host("b", 3, user="me"), here="b")
    assert places(seats) == [("localhost", 3), ("a", 2)]
    assert [seat.agent for seat in seats] == [1, 0]
    assert seats[0].host.user is None
    assert _weights(seats) is None


def test_a_machine_that_is_not_listed_gets_rank_0_and_no_cells() -> None:
    seats = seated(Host("a", 2), Host("b", 1))
    assert places(seats) == [("localhost", 1), ("a", 2), ("b", 1)]
    assert _weights(seats) == (0.0, 1.0, 1.0, 1.0)
    weighted = seated(Host("a", 2, weight=3.0), Host("b", 1, weight=1.0))
    assert _weights(weighted) == (0.0, 1.5, 1.5, 1.0)


@pytest.mark.parametrize(
    ("hosts", "cores", "threads", "found"),
    [
        ([Host("a"), Host("b", cores=2)], 4, 1, [4, 2]),
        ([Host("a"), Host("b", cores=2)], 4, 2, [2, 1]),
        ([Host("a"), Host("b")], 64, 1, [5, 5]),
        ([Host("a", 64), Host("b")], 64, 1, [64, 5]),
    ],
    ids=["cores", "threads", "few cells", "slots"],
)
def test_hosts_take_as_many_ranks_as_cores(hosts: list[Host], cores: int, threads: int, found: list[int]) -> None:
    seats = seated(*hosts, here="a", cores=cores, threads=threads)
    assert [count for _, count in places(seats)] == found


def test_fewer_ranks_fill_the_hosts_in_order() -> None:
    three = [Host("a", 2), Host("b", 2), Host("c", 2)]
    assert places(seated(*three, here="a", ranks=3)) == [("localhost", 2), ("b", 1)]
    with pytest.raises(CaseError, match="7 ranks do not fit on the hosts, which take 6"):
        seated(*three, here="a", ranks=7)


def test_weights_of_some_hosts_only_are_refused() -> None:
    Path("hosts").write_text("a weight=2\nb\n")
    said = in_process("run", "small.toml", "--hosts", "hosts")
    assert said.status == 2
    assert "host b has no weight, but others have" in said.err
    assert "hosts:2" in said.err
    assert not Path("runs").exists()


def test_large_files_get_other_names_on_hosts_that_lack_them(in_tmp_path: Path) -> None:
    """Also stores, which are directories; files in the directory of the run are in it already."""
    Path("data.zarr").mkdir()
    for name in ("data.zarr/zarr.json", "big.npy"):
        Path(name).write_text("{}")
    run = RunDirectory(in_tmp_path / "run")
    run.inputs.mkdir(parents=True)
    (run.inputs / "r.rle").write_text("o!")
    paths = [str(in_tmp_path / name) for name in ("data.zarr", "big.npy")]
    run.case.write_text(f'init = "inputs/r.rle"\nfiles = {paths}\n'.replace("'", '"'))
    files = _files(run)
    assert [str(file.relative_to(in_tmp_path)) for file in files.every_large] == ["data.zarr/zarr.json", "big.npy"]
    assert set(files.for_host(files.lacking([]), [])) == {"case.toml", "id", "inputs/r.rle"}
    names = files.lacking([in_tmp_path / "data.zarr/zarr.json"])
    assert names == {in_tmp_path / "data.zarr": "large/0/data.zarr"}
    assert set(files.for_host(names, list(names))) == {"case.toml", "id", "inputs/r.rle"}
    found = files.for_host(names, [])
    assert set(found) == {"case.toml", "id", "inputs/r.rle", "large/0/data.zarr/zarr.json"}
    assert '"large/0/data.zarr"' in str(found["case.toml"])
    assert paths[1] in str(found["case.toml"])
    assert renamed({"a": ["x.py:f", 1]}, {Path("x.py"): "y.py"}) == {"a": ["y.py:f", 1]}


@pytest.mark.parametrize(
    ("overrides", "found"),
    [
        ([], 1),
        (["run.steps=100000000"], 8),
        (["run.layout=slabs"], 8),
        (["run.mapping=tiles"], 8),
        (["output.writers=1"], 8),
        (["run.ranks=3"], 3),
    ],
    ids=["short", "long", "layout", "mapping", "writers", "given"],
)
def test_a_run_that_is_shorter_than_the_start_of_ranks_has_one(
    overrides: list[str], found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minga.cli.start.available_cores", lambda: list(range(8)))
    monkeypatch.setattr("minga.cli.start.allocation", lambda threads: None)
    with ranks_here(read_case("small.toml", overrides), inside=False) as start:
        assert (start.ranks, start.prepare is None) == (found, found == 1)
