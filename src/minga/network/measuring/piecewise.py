"""Piecewise linear fit of time against size: ``t(n) = alpha + beta n``, with breaks where protocols change.

The breaks are chosen by dynamic programming over the measured sizes (R. Bellman, R. Roth, *Curve fitting by segmented
straight lines*, JASA 64, 1969), their number by the Bayesian information criterion (G. Schwarz, Ann. Stat. 6, 1978).
Errors are relative to the time; weights by Huber and by Student's t keep single outlying sizes from bending a piece.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.plan.links import Link, Segment

__all__ = ["Fit", "Piece", "fit_pieces", "link_of"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_POINTS = 3
"""Smallest number of sizes in a piece."""
_SPAN = 1.3
"""Smallest ratio of the last to the first size of a piece, so that its slope is defined."""
_PRICE = 5
"""Number of parameters for which a piece counts in the information criterion."""
_FLOOR = 0.004
"""Relative error below which another piece is not worthwhile."""
_HUBER, _ROUNDS = 1.345, 10


@dataclass(frozen=True, slots=True)
class Piece:
    """Piece of a fit: messages of ``least`` to ``most`` bytes take ``alpha + beta * bytes`` seconds.

    The intervals are 95 % intervals by bootstrap. ``above`` is the last measured size of the previous piece: the break
    lies between it and ``least``. ``name`` is the name of the known limit there.
    """

    least: int
    most: int
    alpha: float
    beta: float
    alpha_interval: tuple[float, float]
    beta_interval: tuple[float, float]
    above: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Fit:
    """Fit of a measured curve by pieces, of which the first extends down to 0 and the last up without limit."""

    pieces: tuple[Piece, ...]
    zero: float
    """Measured seconds of the smallest message, that is, the latency."""
    half: float
    """R. Hockney's n_1/2: bytes from which half of the final bandwidth is reached."""
    worst: float
    """Largest relative error of the fit over the measured sizes."""
    warnings: tuple[str, ...] = field(default=())

    @property
    def bandwidth(self) -> float:
        """Bandwidth of large messages in bytes per second; inf if time does not grow with size."""
        beta = self.pieces[-1].beta
        return 1 / beta if beta > 0 else float("inf")

    def time(self, size: Sequence[float] | Floats) -> Floats:
        """Return the seconds for each size in bytes."""
        return self.link().time(np.asarray(size, float))

    def link(self, overlap: float = 1.0) -> Link:
        """Return the fit as a link for the planner."""
        return link_of([asdict(piece) for piece in self.pieces], self.zero, overlap)

    def as_dict(self) -> dict[str, Any]:
        """Return the fit as JSON-serialisable data."""
        unbounded = {"half": self.half, "bandwidth": self.bandwidth}
        return asdict(self) | {key: value if np.isfinite(value) else None for key, value in unbounded.items()}


def link_of(pieces: Sequence[Mapping[str, Any]], zero: float, overlap: float = 1.0) -> Link:
    """Return a link from pieces as in JSON and the measured latency ``zero`` in seconds.

    If alpha of the first piece is not positive, the latency is the lower limit of the time.
    """
    segments = [Segment(int(p["least"]) if i else 0, float(p["alpha"]), float(p["beta"])) for i, p in enumerate(pieces)]
    first = segments[0]
    if first.alpha <= 0:
        segments[:1] = [Segment(0, zero, 0.0), Segment(1, first.alpha, first.beta)]
    return Link(tuple(segments), overlap)


def fit_pieces(
    sizes: Sequence[int],
    seconds: Sequence[float],
    *,
    most_pieces: int = 4,
    names: Mapping[str, int] | None = None,
    doubt: Sequence[float] | None = None,
    resamples: int = 200,
    seed: int = 0,
) -> Fit:
    """Fit measured times by pieces.

    Parameters
    ----------
    sizes
        Message sizes in bytes.
    seconds
        Measured times, minima or medians.
    most_pieces
        Largest number of pieces.
    names
        Limits that may appear as breaks, ``{"MTU": 1448, "eager limit": 65536}``: for each, the largest message in
        bytes that does not exceed it.
    doubt
        Relative uncertainty of each time, if known; uncertain times get less weight.
    resamples
        Number of bootstrap samples.
    seed
        Seed of the bootstrap.

    Returns
    -------
    Fit
        The fit.

    Raises
    ------
    ValueError
        If there are fewer than two different sizes, or times that are not positive.
    """
    order = np.argsort(np.asarray(sizes), kind="stable")
    n = np.asarray(sizes, float)[order]
    t = np.asarray(seconds, float)[order]
    if len(np.unique(n)) < 2 or n.shape != t.shape:
        raise ValueError(f"a fit needs times of at least two sizes, found {len(t)} times of {len(np.unique(n))}")
    if not (np.isfinite(t).all() and (t > 0).all()):
        raise ValueError("times of messages must be positive numbers")
    unsure = np.zeros(len(n)) if doubt is None else np.nan_to_num(np.asarray(doubt, float)[order], nan=1.0, posinf=1.0)
    sigma = np.hypot(_scale(n, t), unsure)
    cuts = _best_cuts(n, t, sigma, most_pieces)
    generator = np.random.default_rng(seed)
    pieces = []
    for first, last in itertools.pairwise(cuts):
        above = int(n[first - 1]) if first else 0
        inside = slice(first, last)
        pieces.append(_piece(n[inside], t[inside], sigma[inside], above, names or {}, resamples, generator))
    fit = Fit(tuple(pieces), float(t[0]), 0.0, 0.0)
    worst = float(np.max(np.abs(fit.time(n) / t - 1)))
    return Fit(fit.pieces, fit.zero, _half(fit), worst, _warnings(fit, worst))


def _best_cuts(n: Floats, t: Floats, sigma: Floats, most: int) -> list[int]:
    """Return the indices at which pieces begin, followed by the number of points."""
    count = len(n)
    least = min(_POINTS, count)
    starts, ends = np.triu_indices(count + 1, least)
    wide = (n[ends - 1] >= _SPAN * np.maximum(n[starts], 1)) | (ends - starts == count)
    starts, ends = starts[wide], ends[wide]
    inside = (np.arange(count) >= starts[:, None]) & (np.arange(count) < ends[:, None])
    losses = np.full((count + 1, count + 1), np.inf)
    losses[starts, ends] = _lines(n, t, inside, sigma)[2]
    best = np.full((most + 1, count + 1), np.inf)
    best[0, 0] = 0.0
    came = np.zeros((most + 1, count + 1), int)
    for pieces in range(1, most + 1):
        through = best[pieces - 1][:, None] + losses
        came[pieces] = np.argmin(through, axis=0)
        best[pieces] = np.min(through, axis=0)
    # A piece has alpha, beta and a break, which counts for more because it was searched for among all sizes.
    criterion = [
        np.inf if not np.isfinite(loss) else loss + _PRICE * pieces * np.log(count)
        for pieces, loss in enumerate(best[1:, count], 1)
    ]
    pieces = int(np.argmin(criterion)) + 1
    cuts = [count]
    for left in range(pieces, 0, -1):
        cuts.append(int(came[left, cuts[-1]]))
    return cuts[::-1]


def _scale(n: Floats, t: Floats) -> float:
    """Estimate the relative noise of times from their distance to the line through the two neighbours."""
    if len(n) < 6:
        return _FLOOR
    errors = []
    for at in range(len(n)):
        near = [i for i in range(max(0, at - 1), min(len(n), at + 2)) if i != at]
        line = np.interp(n[at], n[near], t[near]) if len(near) == 2 else t[at]
        errors.append((t[at] - line) / t[at])
    # The distance of a point from the middle of two others has 3/2 of the variance of one point.
    return max(_FLOOR, 1.4826 * float(np.median(np.abs(errors))) / 1.2247)


def _lines(n: Floats, t: Floats, inside: Bools, sigma: Floats) -> tuple[Floats, Floats, Floats]:
    """Return alpha, beta and loss of the best line through each row of chosen points.

    The loss is twice the negative log-likelihood of the relative errors for Student's t with 3 degrees of freedom.
    """
    weights = inside / (t * sigma) ** 2
    alpha, beta = _weighted(n, t, weights)
    for turn in range(_ROUNDS):
        errors = np.abs((alpha[:, None] + beta[:, None] * n - t) / (t * sigma))
        # Huber's weights converge from any start; those of Student's t then discount outliers.
        trust = np.minimum(1.0, _HUBER / np.maximum(errors, 1e-30)) if turn < _ROUNDS // 2 else 4 / (3 + errors**2)
        alpha, beta = _weighted(n, t, weights * trust)
    errors = (alpha[:, None] + beta[:, None] * n - t) / (t * sigma)
    return alpha, beta, (4 * np.log1p(errors**2 / 3) * inside).sum(axis=1)


def _weighted(n: Floats, t: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return alpha and beta by least squares for each row of weights, with beta >= 0."""
    total = weights.sum(axis=1)
    mean_n, mean_t = (weights @ n) / total, (weights @ t) / total
    off = n - mean_n[:, None]
    spread = (weights * off**2).sum(axis=1)
    slope = (weights * off * (t - mean_t[:, None])).sum(axis=1)
    beta = np.where(spread > 0, np.maximum(slope, 0.0) / np.where(spread > 0, spread, 1.0), 0.0)
    return mean_t - beta * mean_n, beta


def _piece(
    n: Floats,
    t: Floats,
    sigma: Floats,
    above: int,
    names: Mapping[str, int],
    resamples: int,
    generator: np.random.Generator,
) -> Piece:
    every = np.ones((1, len(n)), bool)
    (alpha,), (beta,), _ = _lines(n, t, every, sigma)
    errors = t / (alpha + beta * n) - 1
    drawn = generator.choice(errors, (resamples, len(n)))
    pairs = [_lines(n, (alpha + beta * n) * (1 + row), every, sigma)[:2] for row in drawn]
    alphas, betas = (
        np.concatenate(column) if pairs else np.array([value]) for column, value in _columns(pairs, alpha, beta)
    )
    fitting = [name for name, limit in names.items() if above and above <= limit < n[0]]
    return Piece(
        int(n[0]), int(n[-1]), float(alpha), float(beta), _interval(alphas), _interval(betas), above, ", ".join(fitting)
    )


def _columns(pairs: list[tuple[Floats, Floats]], alpha: float, beta: float) -> list[tuple[list[Floats], float]]:
    return [([pair[0] for pair in pairs], alpha), ([pair[1] for pair in pairs], beta)]


def _interval(values: Floats) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def _half(fit: Fit) -> float:
    """Return the smallest size that reaches half of the final bandwidth."""
    final = fit.pieces[-1].beta
    if final == 0:
        return float("nan")
    for index, piece in enumerate(fit.pieces):
        # n / (alpha + beta n) >= 1 / (2 final)
        gain = 2 * final - piece.beta
        least = 0 if index == 0 else piece.least
        most = np.inf if index == len(fit.pieces) - 1 else fit.pieces[index + 1].least
        if gain > 0 and max(least, piece.alpha / gain) < most:
            return float(max(least, piece.alpha / gain))
    return float("nan")


def _warnings(fit: Fit, worst: float) -> tuple[str, ...]:
    said = []
    last = fit.pieces[-1]
    if last.alpha < 0:
        said.append(
            "large messages extrapolate to a negative latency: a shaper lets a burst pass, or caches help small ones"
        )
    if last.beta == 0:
        said.append("time does not grow with size in the measured range, so the bandwidth is unknown")
    if worst > 0.25:
        said.append(f"the fit is off by {worst:.0%} at its worst size")
    return tuple(said)
