"""Freivalds' check of a result: C x against alpha A (B x) + beta C0 x, for random x of +1 and -1.

R. Freivalds, *Probabilistic machines can use less running time*, IFIP Congress 1977. The check reads the matrices as
they are stored and takes about n^2 operations. A single element that is wrong by more than the tolerance is found with
certainty, as all components of x have magnitude 1; several wrong elements in one row escape one x with a probability of
at most 1/2.

The tolerance is the effect of rounding: a sum of k products is off by at most k u |A_i| |B_j| (u: unit roundoff;
Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1), and with random rounding errors by a small
multiple of sqrt(k) u |A_i| |B_j| (Higham and Mary, SIAM J. Sci. Comput. 41, 2019). The smaller of the two is used, with
16 as the multiple. As the signs of x are independent of these errors, their sum over a row exceeds 6 |errors| with a
probability of 3e-8 (Hoeffding).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm
from minga.errors import RunError
from minga.models.matmul.operands import Array, Operand
from minga.models.matmul.problem import Problem

__all__ = ["Check", "freivalds"]

Floats = NDArray[np.float64]
Numbers = NDArray[Any]
"""Numbers of f8 or c16."""

VECTORS: Final = 4
"""Default number of random vectors."""
_DEVIATIONS: Final = 6.0
"""Tolerance of the sum of errors over a row, in units of their norm."""
_ROUNDING: Final = 16.0
"""Multiple of sqrt(k) u in the bound of random rounding errors."""
_SMALL, _LARGE = 1e-140, 1e150
"""Bounds between which norms can be computed as roots of sums of squares."""
_CHUNK: Final = 1 << 23
"""Elements of a matrix that are processed at a time."""


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of a check that found no error.

    Attributes
    ----------
    largest
        Largest |C x - alpha A (B x) - beta C0 x| over its tolerance; below 1.
    limit
        Size of an error from which on any single wrong element would have been found.
    vectors
        Number of vectors x; 0 if the operands hold values that are not finite, so that nothing could be checked.
    """

    largest: float
    limit: float
    vectors: int

    def __str__(self) -> str:
        if not self.vectors:
            return "not checked, because the operands hold values that are not finite"
        return (
            f"verified by Freivalds' check with {self.vectors} random vectors: the residual is {self.largest:.2g} "
            f"times the tolerance for rounding; an element wrong by {self.limit:.2g} would have been found"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data for JSON."""
        limit = self.limit if math.isfinite(self.limit) else None
        return {"largest": self.largest, "limit": limit, "vectors": self.vectors}


def freivalds(
    problem: Problem, result: Array, comm: Comm | None = None, vectors: int = VECTORS, seed: int | None = None
) -> Check:
    """Check a result by random vectors.

    Parameters
    ----------
    problem, result
        The product and the matrix C.
    comm
        Ranks that share the check, of which each must see the operands and the result; the call is then collective and
        its outcome is the same on all ranks. By default this process checks alone.
    vectors
        Number of random vectors.
    seed
        Seed that makes the vectors reproducible; by default they are unpredictable.

    Raises
    ------
    RunError
        If C is wrong; the error names a wrong row.
    """
    rank, size = (comm.rank, comm.size) if comm is not None else (0, 1)
    signs: Floats = np.random.default_rng(seed).integers(0, 2, (problem.columns, vectors)).astype(np.float64) * 2 - 1
    if comm is not None:
        signs = comm.bcast(signs)
    first, end = _share(problem.depth, rank, size)
    with np.errstate(invalid="ignore", over="ignore"):
        image, norms = _times(problem.b, signs, first, end)
        if comm is not None:
            image, norms = _together(comm, image), _together(comm, norms)
        low, high = _share(problem.rows, rank, size)
        found = _rows(problem, result, signs, image, math.hypot(*norms.tolist()), low, high)
    if comm is not None:
        every = comm.gather(found)
        found = comm.bcast(None if every is None else _worst(every))
    return _judged(problem, found, vectors)


@dataclass(frozen=True, slots=True)
class _Found:
    """Findings for some rows: the worst ratio of residual to tolerance, its row, and the largest tolerance."""

    ratio: float
    row: int
    limit: float
    finite: bool


def _worst(found: list[_Found]) -> _Found:
    worst = max(found, key=_badness)
    return replace(worst, limit=max(one.limit for one in found))


def _badness(found: _Found) -> tuple[bool, float]:
    return not found.finite, math.inf if math.isnan(found.ratio) else found.ratio


def _judged(problem: Problem, found: _Found, vectors: int) -> Check:
    if not found.finite:
        return Check(0.0, math.inf, 0)
    if not found.ratio < 1:
        wider = "c16" if problem.dtype.kind == "c" else "f8"
        what = (
            f"is off by {found.ratio:.3g} times the tolerance for rounding"
            if math.isfinite(found.ratio)
            else "is not finite"
        )
        raise RunError(
            f"the result is wrong: row {found.row} of C {what} by Freivalds' check",
            remedy="compute it again; if that does not help, the memory or the network of a machine is faulty"
            if math.isfinite(found.ratio)
            else f"values may be too large for {problem.dtype.str[1:]}: scale the operands, or use {wider}",
        )
    return Check(found.ratio, found.limit, vectors)


def _rows(problem: Problem, result: Array, signs: Floats, image: Numbers, norm: float, first: int, end: int) -> _Found:
    """Check the rows from ``first`` to before ``end``."""
    if first == end:
        return _Found(0.0, first, 0.0, True)
    expected, norms = _times(problem.a, image, first, end)
    size = abs(problem.alpha) * norms * norm
    expected *= problem.alpha
    if problem.c is not None:
        added, norms = _times(problem.c, signs, first, end)
        expected += problem.beta * added
        size += abs(problem.beta) * norms
    found, _ = _times(Operand("C", (problem.rows, problem.columns), problem.dtype, False, result), signs, first, end)
    finite = bool(np.isfinite(size).all() and np.isfinite(expected).all())
    tolerance = _DEVIATIONS * (_growth(problem) * size + _lost(problem))
    residual = np.abs(found - expected).max(axis=1, initial=0.0)
    ratio = np.where(residual == 0, 0.0, residual / tolerance)
    worst = int(np.argmax(np.where(np.isnan(ratio), np.inf, ratio)))
    return _Found(float(ratio[worst]), first + worst, float(tolerance.max()), finite)


def _growth(problem: Problem) -> float:
    """Return the bound of rounding errors of the product and of this check (done in f8 or c16), relative to |A_i| |B|.

    Both parts of a complex sum of k products are real sums of 2 k products, and together err by sqrt(2) as much.
    """
    parts = 2 if problem.dtype.kind == "c" else 1

    def gamma(terms: int, unit: float) -> float:
        return math.sqrt(parts) * min(parts * terms + 2.0, _ROUNDING * math.sqrt(parts * terms)) * unit

    own = np.finfo(np.float64).eps / 2
    product = gamma(problem.depth, float(np.finfo(problem.dtype).eps) / 2)
    return product + 2 * gamma(problem.columns, own) + gamma(problem.depth, own)


def _lost(problem: Problem) -> float:
    """Return the error of a row of C that underflow may cause: the smallest normal number for each operation."""
    least = float(np.finfo(problem.dtype).tiny)
    return math.sqrt(problem.columns) * (abs(problem.alpha) * problem.depth + abs(problem.beta) + 2) * least


def _times(operand: Operand, vectors: Numbers, first: int, end: int) -> tuple[Numbers, Floats]:
    """Return the rows of op(X) from ``first`` to before ``end`` times vectors, in f8 or c16, and the rows' norms."""
    wide = np.complex128 if operand.dtype.kind == "c" else np.float64
    found: Numbers = np.zeros((end - first, vectors.shape[1]), wide)
    norms = np.zeros(end - first)
    for rows, columns in _chunks(operand, first, end):
        piece: Numbers = np.asarray(operand.whole[rows, columns], wide)
        here = slice(rows.start - first, rows.stop - first)
        found[here] += piece @ vectors[columns]
        norms[here] = np.hypot(norms[here], _norms(piece))
    return found, norms


def _norms(rows: Numbers) -> Floats:
    """Return the norms of rows, also where the squares of their elements are too small or too large for f8."""
    if rows.dtype.kind == "c":
        return _norms(np.ascontiguousarray(rows).view(np.float64))
    norms: Floats = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    odd = ~((norms > _SMALL) & (norms < _LARGE))
    if odd.any():
        scale = np.abs(rows[odd]).max(axis=1, initial=0.0, keepdims=True)
        scale[scale == 0] = 1.0
        part = rows[odd] / scale
        norms[odd] = scale[:, 0] * np.sqrt(np.einsum("ij,ij->i", part, part))
    return norms


def _chunks(operand: Operand, first: int, end: int) -> Iterator[tuple[slice, slice]]:
    """Yield pieces that are contiguous in memory or in the file: stored rows, or parts of them."""
    columns = operand.shape[1]
    if operand.transposed:
        step = max(1, _CHUNK // max(1, end - first))
        for at in range(0, columns, step):
            yield slice(first, end), slice(at, min(columns, at + step))
    else:
        step = max(1, _CHUNK // max(1, columns))
        for at in range(first, end, step):
            yield slice(at, min(end, at + step)), slice(0, columns)


def _together(comm: Comm, rows: Numbers) -> Numbers:
    """Return the rows of all ranks, concatenated, on every rank."""
    gathered = comm.gather(rows)
    every: Numbers = comm.bcast(None if gathered is None else np.concatenate(gathered))
    return every


def _share(count: int, rank: int, size: int) -> tuple[int, int]:
    return count * rank // size, count * (rank + 1) // size
