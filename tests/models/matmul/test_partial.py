"""A product that is interrupted goes on with what is there, and only with that of the same product."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from matmul_hands import close, matrix, plan_for
from minga.models.matmul.agreement import _joined
from minga.models.matmul.blocks import Block, Task, missing, split
from minga.models.matmul.problem import problem_of
from minga.models.matmul.product import Options, product
from minga.models.matmul.result import PartialFile, coherent, partial_of


def test_what_is_missing() -> None:
    assert missing(4, 6, []) == [Task(((0, 4),), 0, 6)]
    assert missing(4, 6, [Block(0, 4, 0, 6)]) == []
    done = [Block(0, 2, 0, 4), Block(3, 4, 0, 2), Block(1, 4, 4, 6), Block(0, 1, 4, 6)]
    assert missing(4, 6, done) == [Task(((2, 3),), 0, 2), Task(((2, 4),), 2, 4)]


def test_random_blocks_and_what_they_leave_cover_all_once() -> None:
    chance = np.random.default_rng(3)
    for _ in range(100):
        rows, columns = chance.integers(1, 12, 2).tolist()
        done = []
        for _ in range(chance.integers(0, 6)):
            r, c = np.sort(chance.integers(0, rows + 1, 2)), np.sort(chance.integers(0, columns + 1, 2))
            if r[0] < r[1] and c[0] < c[1]:
                done.append(Block(*r.tolist(), *c.tolist()))
        there, count = np.zeros((rows, columns), bool), np.zeros((rows, columns), int)
        for block in done:
            there[block.first_row : block.end_row, block.first_column : block.end_column] = True
        for task in missing(rows, columns, done):
            for low, high in task.rows:
                count[low:high, task.first : task.end] += 1
        assert (count == ~there).all()


def test_ranges_are_split_in_order() -> None:
    assert split([(2, 5), (8, 10)], [2, 0, 3]) == [((2, 4),), (), ((4, 5), (8, 10))]


class Stopped(Exception):
    pass


def interrupted(files: tuple[Path, Path], out: Path, after: int, plan: Any) -> None:
    """A product that ends in the middle, as if a rank were lost."""

    def progress(done: int, total: int) -> None:
        if done == after:
            raise Stopped

    with pytest.raises(Stopped):
        product(lambda: problem_of(*files), out, mg.SerialComm(), plan=plan, progress=progress)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    found = tmp_path / "a.npy", tmp_path / "b.npy"
    np.save(found[0], matrix(40, 30))
    np.save(found[1], matrix(30, 50, seed=1))
    return found


def always_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minga.models.matmul.result._SETTLED", 0.0)


@pytest.mark.parametrize("ranks", [1, 3])
def test_only_what_is_missing_is_done(
    files: tuple[Path, Path], tmp_path: Path, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    always_settled(monkeypatch)
    out = tmp_path / "c.npy"
    interrupted(files, out, 3, plan_for(40, 50, 30, [1e9], layout="alone", width=10))
    assert not out.exists()
    kept = PartialFile.join(out)
    assert np.isclose(kept.array[:, :30], (np.load(files[0]) @ np.load(files[1]))[:, :30]).all()
    kept.array[5, 5] += 1000  # what is there is not done again: the check sees this
    plan = plan_for(40, 20, 30, [2e9, 1e9, 1e9][:ranks], layout="rows", width=10)

    def body(comm: Any) -> Any:
        return product(lambda: problem_of(*files), out, comm, Options(check=False), plan=plan)[1]

    account = mg.run_virtual(ranks, body)[0]
    assert account.before == pytest.approx(0.6)
    found, expected = np.load(out), np.load(files[0]) @ np.load(files[1])
    assert found[5, 5] == pytest.approx(expected[5, 5] + 1000)
    found[5, 5] = expected[5, 5]
    assert close(found, np.load(files[0]), np.load(files[1]), expected)
    assert not partial_of(out).exists()


def test_lost_rows_are_found_in_the_lists(files: tuple[Path, Path], tmp_path: Path) -> None:
    """Blocks of three ranks, one of which was lost early; a half-written line does not count."""
    a, b = np.load(files[0]), np.load(files[1])
    out = tmp_path / "c.npy"
    problem = problem_of(*files)
    kept = PartialFile.begin(out, problem.identity(), (40, 50), problem.dtype)
    expected = a @ b
    for rows, until in (((0, 20), 40), ((20, 30), 10), ((30, 40), 30)):
        kept.store([rows], 0, until, expected[rows[0] : rows[1], :until])
    kept.flush()
    (name,) = partial_of(out).glob("done-*.txt")
    with name.open("a") as stream:
        stream.write("0 40 0 5")  # killed while it wrote 0 40 0 50 .
    found, account = product(lambda: problem_of(*files), out, mg.SerialComm(), Options(layout="rows"))
    assert account is not None
    assert account.before == pytest.approx((20 * 40 + 10 * 10 + 10 * 30) / 2000)
    assert close(np.array(found), a, b, expected)


@pytest.mark.parametrize("change", ["operand", "factor", "transpose"])
def test_another_product_begins_anew(
    files: tuple[Path, Path], tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    always_settled(monkeypatch)
    out = tmp_path / "c.npy"
    interrupted(files, out, 3, plan_for(40, 50, 30, [1e9], layout="alone", width=10))
    options: dict[str, Any] = {}
    if change == "operand":
        other = np.load(files[0])
        other[7, 7] += 1
        np.save(files[0], other)
        os.utime(files[0], ns=(0, 7))
    elif change == "factor":
        options = {"alpha": 2.0}
    else:
        np.save(files[1], np.load(files[1]).T.copy())
        options = {"transpose_b": True}
    _, account = product(lambda: problem_of(*files, **options), out, mg.SerialComm())
    assert account is not None
    assert account.before == 0


def test_no_trace_of_what_could_not_begin(files: tuple[Path, Path], tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(mg.CaseError, match="not enough"):
        mg.matmul(*files, out=tmp_path / "c.npy", memory=100)
    with pytest.raises(mg.CaseError, match="cannot be written"):
        mg.matmul(*files, out=tmp_path / "no" / "c.npy")
    with pytest.raises(mg.CaseError, match=r"\.npy"):
        mg.matmul(*files, out=tmp_path / "c.dat")
    assert sorted(tmp_path.iterdir()) == before


def begun(out: Path, files: tuple[Path, Path], alpha: float = 1.0) -> PartialFile:
    problem = problem_of(*files, alpha=alpha)
    return PartialFile.begin(out, problem.identity(), (40, 50), problem.dtype)


def test_nothing_of_a_person_is_removed(files: tuple[Path, Path], tmp_path: Path) -> None:
    own = tmp_path / "c.npy.partial" / "thesis.txt"
    own.parent.mkdir()
    own.write_text("mine")
    with pytest.raises(mg.CaseError, match=r"thesis\.txt"):
        mg.matmul(*files, out=tmp_path / "c.npy")
    assert own.read_text() == "mine"


def test_two_products_under_one_name_do_not_mix(files: tuple[Path, Path], tmp_path: Path) -> None:
    """The second takes the place of the first, which then lists no blocks there and gives the file no name."""
    out = tmp_path / "c.npy"
    first = begun(out, files)
    first.store([(0, 20)], 0, 50, np.ones((20, 50)))
    first.flush()
    second = begun(out, files, alpha=2.0)
    first.store([(20, 40)], 0, 50, np.ones((20, 50)))
    first.flush()
    assert second.done() == []
    with pytest.raises(mg.RunError, match="another product"):
        first.finish()
    first.discard()
    assert not out.exists()
    second.store([(0, 40)], 0, 50, np.full((40, 50), 2.0))
    second.flush()
    second.finish()
    assert (np.load(out) == 2).all()


def test_other_hosts_keep_away_from_maps_of_network_files(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    line = f"30 1 {os.major(device)}:{os.minor(device)} / /home rw,relatime shared:1 - %s server:/home rw\n"
    for kind, fit in (("nfs4", False), ("cifs", False), ("fuse.sshfs", False), ("ext4", True), ("lustre", True)):
        mounts.write_text("29 1 0:0 / /other rw - nfs4 other:/ rw\n" + line % kind)
        assert coherent(tmp_path, mounts) is fit
    kept = begun(tmp_path / "c.npy", files)
    monkeypatch.setattr("minga.models.matmul.agreement.coherent", lambda folder: False)
    assert _joined(kept.out, kept.token, near=True) is not None
    assert _joined(kept.out, kept.token, near=False) is None
    assert _joined(kept.out, "another", near=True) is None
