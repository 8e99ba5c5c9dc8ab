"""Automata on small grids from a soup that anybody can make: populations and checksums, cell by cell.

The soup: x = 1; for each cell in row-major order x = (1103515245 x + 12345) mod 2**31, alive where (x >> 16) mod 8 < 3.
The checksum is CRC-32 of the cells as bytes. All numbers were computed by NumPy and, but for those in three dimensions
and in blocks, by Golly's bgolly 3.3 on ":T64,64" and ":P64,64".
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import minga as mg
from minga.models.automaton.patterns import read_rle, write_rle
from rule_oracle import crc, seed_cells

from .watching import cells

SOUP = seed_cells((64, 64))

# rule, boundary: {generation: (population, checksum)}
KNOWN: dict[tuple[str, str], dict[int, tuple[int, str]]] = {
    ("B3/S23", "periodic"): {
        1: (1555, "dc44f2b9"), 10: (809, "e0da66c1"), 100: (298, "be56a212"), 1000: (140, "20d02952"),
    },
    ("B3/S23", "fixed"): {
        1: (1524, "6cfad3d9"), 10: (797, "df5b4777"), 100: (335, "54306830"), 1000: (120, "56537769"),
    },
    ("B36/S23", "periodic"): {1: (1617, "7527230e"), 10: (1038, "6adaa39c"), 100: (429, "59abc955")},
    ("B36/S23", "fixed"): {1: (1586, "c599026e"), 10: (1002, "3727e1fa"), 100: (359, "29334185")},
    ("B2/S", "periodic"): {
        1: (610, "9777b7f7"), 10: (810, "920a9d8a"), 100: (907, "e9b38dde"), 1000: (864, "d377e560"),
    },
    ("B2/S", "fixed"): {
        1: (617, "4317062e"), 10: (805, "b95c2402"), 100: (828, "951e53fa"), 1000: (856, "f19d95d6"),
    },
}  # fmt: skip
CASES = [(rule, boundary, generation) for (rule, boundary), known in KNOWN.items() for generation in known]


def fingerprint(field: NDArray[Any]) -> tuple[int, str]:
    return int(np.count_nonzero(field)), crc(field)


def test_the_soup() -> None:
    assert fingerprint(SOUP) == (1501, "31583052")
    assert "".join(map(str, SOUP[0, :16])) == "0010001000000010"


@pytest.mark.few(5)
@pytest.mark.parametrize(("rule", "boundary", "generation"), CASES)
def test_two_dimensions(rule: str, boundary: str, generation: int) -> None:
    model = mg.automaton(rule, SOUP.shape, init=SOUP, boundary=boundary)
    assert fingerprint(cells(model, generation)) == KNOWN[rule, boundary][generation]


def test_three_dimensions() -> None:
    """Life 4555: a cell of 26 neighbours lives on with 4 or 5, and is born with 5. A soup of one cell in four."""
    soup = seed_cells((16, 16, 16), modulus=4, below=1)
    assert fingerprint(soup) == (1006, "6fb33daf")
    for generation, known in {1: (777, "30f8b445"), 2: (704, "28edc3f3"), 5: (641, "5fba7783")}.items():
        assert fingerprint(cells(mg.automaton("B5/S45", soup.shape, init=soup), generation)) == known


# Golly itself, where it is installed
@pytest.mark.skipif(shutil.which("bgolly") is None, reason="needs bgolly: apt-get install golly")
@pytest.mark.parametrize("boundary", ["periodic", "fixed"])
@pytest.mark.parametrize("rule", ["B3/S23", "B36/S23", "B3678/S34678", "B1357/S1357", "B2/S", "B3/S23V", "B2/S34H"])
def test_agrees_with_golly(rule: str, boundary: str, tmp_path: Path) -> None:
    """The cells of a soup that is no square, after 40 generations."""
    soup = seed_cells((41, 70))
    rows, columns = soup.shape
    bounded = f"{rule}:{'T' if boundary == 'periodic' else 'P'}{columns},{rows}"
    (tmp_path / "soup.rle").write_text(write_rle(soup, bounded))
    command = ["bgolly", "-a", "QuickLife", "-m", "40", "-r", bounded, "-o", "left.rle", "soup.rle"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    golly = read_rle((tmp_path / "left.rle").read_text())
    found = cells(mg.automaton(rule, soup.shape, init=soup, boundary=boundary), 40)
    alive = np.argwhere(found)
    assert golly.population == len(alive)
    # Golly writes the box around the live cells.
    low, high = alive.min(axis=0), alive.max(axis=0) + 1
    assert np.array_equal(golly.cells, found[low[0] : high[0], low[1] : high[1]])
