"""The Abelian sandpile: avalanches of known size, its group's identity, and its exact means.

Sources: D. Dhar, Phys. Rev. Lett. 64 (1990) 1613 (means, the group); S. Caracciolo and A. Sportiello, J. Stat. Mech.
(2012) P09013, arXiv:1207.6074, and V. B. Priezzhev, J. Stat. Phys. 74 (1994) 955 (heights on the infinite lattice).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import minga as mg
from minga.lang.random import uniform
from thinned import thinned

from .sandpile import Grains, loss, pile, sandpile, stabilise


@pytest.mark.few(2)
@pytest.mark.parametrize(("n", "size"), [(3, 10), (5, 35), (9, 165), (21, 1771), (51, 23426)])
def test_a_grain_on_a_full_table(n: int, size: int) -> None:
    """On n x n sites of three grains, one more in the middle: C(n + 2, 3) topplings in n steps; 4 n grains fall off."""
    full = np.full((n, n), 3, np.int32)
    full[n // 2, n // 2] += 1
    left = stabilise(full)
    assert left.topplings.sum() == size == math.comb(n + 2, 3)
    assert left.steps == n
    assert full.sum() - left.grains.sum() == 4 * n
    if n == 51:
        assert (full.sum(), left.grains.sum()) == (7804, 7600)


# Identity of the group
def identity(n: int) -> Grains:
    """Twice the fullest stable pile, less what it becomes, made stable."""
    twice = np.full((n, n), 6, np.int32)
    return stabilise(twice - stabilise(twice, chunk=64).grains, chunk=64).grains


IDENTITIES = {2: 8, 3: 12, 4: 40, 5: 52, 8: 136, 16: 544, 32: 2288, 64: 9320}


@pytest.mark.few(2)
@pytest.mark.parametrize("n", thinned(IDENTITIES, 2, 5, 16, 32))
def test_the_identity(n: int) -> None:
    """Added to itself, or to any recurrent pile, and made stable, it changes nothing."""
    unit = identity(n)
    assert unit.sum() == IDENTITIES[n]
    assert np.array_equal(stabilise(2 * unit, chunk=64).grains, unit)
    full = np.full((n, n), 3, np.int32)
    assert np.array_equal(stabilise(full + unit, chunk=64).grains, full)
    if n == 3:
        assert unit.tolist() == [[2, 1, 2], [1, 0, 1], [2, 1, 2]]


def test_a_thousand_grains_on_one_site() -> None:
    start = pile((41, 41), 1024)
    left = stabilise(start)
    assert left.topplings.sum() == 20384
    assert left.topplings[20, 20] == 596
    assert np.count_nonzero(left.topplings) == 445
    assert np.abs(np.argwhere(left.grains) - 20).max() == 12
    assert np.bincount(left.grains.ravel())[1:].tolist() == [128, 148, 200]
    assert left.steps == 642
    assert left.grains.sum() == 1024
    assert np.array_equal(start - left.grains, loss(left.topplings))


def test_the_order_of_topplings_changes_nothing() -> None:
    """A thousand grains at once, or in two halves, the second one on the ruins of the first."""
    at_once = stabilise(pile((41, 41), 1024), chunk=16)
    half = stabilise(pile((41, 41), 512), chunk=16)
    rest = stabilise(half.grains + pile((41, 41), 512), chunk=16)
    assert np.array_equal(rest.grains, at_once.grains)
    assert np.array_equal(half.topplings + rest.topplings, at_once.topplings)


# Means
def expected_topplings(n: int) -> np.ndarray:
    """Mean topplings that a grain on each of n x n sites causes in the stationary state: row sums of the inverse of
    the toppling matrix, 4 on the diagonal and -1 between neighbours."""
    line = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    matrix = np.kron(line, np.eye(n)) + np.kron(np.eye(n), line)
    return np.linalg.solve(matrix, np.ones(n * n)).reshape(n, n)


@pytest.mark.parametrize(("n", "mean"), [(8, 3.462472), (16, 11.338215), (32, 40.580318)])
def test_mean_topplings_of_a_grain(n: int, mean: float) -> None:
    """20 000 grains at random: since toppling commutes, the topplings of all are those of one after the other."""
    per_site = expected_topplings(n)
    assert per_site.mean() == pytest.approx(mean, abs=5e-7)
    recurrent = np.full((n, n), 3, np.int32)
    count = 20_000
    sites = np.minimum((uniform((count,), seed=1) * n * n).astype(int), n * n - 1)
    dropped = np.bincount(sites, minlength=n * n).reshape(n, n).astype(np.int32)
    left = stabilise(recurrent + dropped, chunk=256)
    assert np.array_equal(recurrent + dropped - left.grains, loss(left.topplings))
    found = left.topplings.sum() / count
    # What the sites before and after hold counts, too, at most three grains each, and where the grains fell.
    assert abs(found - mean) < 4 * per_site.std() / math.sqrt(count) + 3 * per_site.sum() / count
    exactly = float((per_site * (recurrent + dropped - left.grains)).sum())
    assert left.topplings.sum() == pytest.approx(exactly, rel=1e-12)


@pytest.mark.slow
def test_heights_on_a_large_table() -> None:
    """The densities of sites of 0 .. 3 grains, whose mean is 17/8, far from the edge of 128 x 128 sites."""
    n, edge = 128, 24
    p0 = 2 / math.pi**2 - 4 / math.pi**3
    p1 = 1 / 4 - 1 / (2 * math.pi) - 3 / math.pi**2 + 12 / math.pi**3
    p2 = 3 / 8 + 1 / math.pi - 12 / math.pi**3
    p3 = 1 - p0 - p1 - p2
    exact = np.array([p0, p1, p2, p3])
    assert exact == pytest.approx([0.0736362, 0.1738999, 0.3062915, 0.4461724], abs=5e-8)
    assert exact @ np.arange(4) == pytest.approx(17 / 8, abs=1e-12)
    sites = np.full((n, n), 3, np.int32)
    found = []
    for sample in range(20):
        count = 8 if sample == 0 else 2  # grains a site: the first forget how the table was
        dropped = np.floor(uniform((n, n), seed=sample) * (2 * count + 1)).astype(np.int32)
        sites = stabilise(sites + dropped, chunk=1024).grains
        found.append(np.bincount(sites[edge:-edge, edge:-edge].ravel(), minlength=4) / (n - 2 * edge) ** 2)
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / math.sqrt(len(found))
    assert (error < 2e-3).all()
    assert (np.abs(mean - exact) < 4 * error + 1 / (edge + n / 4) ** 2).all()


@pytest.mark.slow
def test_the_same_on_six_ranks() -> None:
    start = {"grains": pile((41, 41), 1024), "topplings": 0 * pile((41, 41), 0)}
    model = mg.automaton(sandpile, (41, 41), init=start, boundary="fixed")

    def digest(comm: object = None) -> str:
        return str(mg.run(model, steps=300, comm=comm, halo_depth=3 if comm else 1).digest)

    assert set(mg.run_virtual(6, digest)) == {digest()}
