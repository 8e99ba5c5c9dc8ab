"""Reductions of one operation: accumulators of workers, totals over ranks, values of registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from minga.compile.abi import ACCUMULATOR_WORDS
from minga.compile.exact import empty_accumulator
from minga.engine import command as cmd
from minga.engine.device import Helper
from minga.engine.exchange import copy_commands
from minga.engine.helpers import (
    BoxAddress,
    Combine,
    Copy,
    Finish,
    candidate_args,
    combine_args,
    finish_args,
    reduction_words,
)
from minga.engine.program import Apply
from minga.engine.regions import lead_field, sums_floats
from minga.errors import LayoutError
from minga.lang.graph import RUN

if TYPE_CHECKING:
    from minga.engine.bind import Binder


@dataclass(slots=True, eq=False)
class BoundReductions:
    """The accumulators of kernels, and the commands that convert them to registers.

    combine   adds up the workers' accumulators and empties them; `commands` begins with it
    """

    accumulators: tuple[int, ...]
    combine: cmd.Command
    commands: list[cmd.Command]
    not_finite: np.ndarray


def bind_reductions(binder: Binder, apply: Apply) -> BoundReductions:
    """Return the accumulators (shared by shell and interior of an operation) and the commands after the last cell."""
    # Both colours of a red-black operation, and both parts of a split one, accumulate into the same words.
    known = binder.reductions.get(id(apply.results))
    if known is not None:
        return known
    _check_runs(binder, apply)
    alone = binder.comm.size == 1 or apply.replicated or binder.storage.layout(lead_field(apply).grid).replicated
    graph = apply.graph
    accumulators, combines, finishes = [], [], []
    sums: list[int] = []
    extremes: list[int] = []
    places: list[tuple[int, int]] = []
    widths = [reduction_words(r.kind, r.dtype) for r in graph.reductions]
    totals = binder.backend.words(sum(widths), ranks=not alone)
    start = 0
    for reduction, width in zip(graph.reductions, widths, strict=True):
        memory = np.tile(empty_accumulator(reduction.kind)[:ACCUMULATOR_WORDS], (binder.backend.workers, 1))
        accumulators.append(binder.address(memory))
        target = binder.address(totals) + 8 * start
        combines.append(Combine(reduction.kind, reduction.dtype, accumulators[-1], target))
        register = apply.results[graph.reductions.index(reduction)]
        finishes.append(Finish(reduction.kind, reduction.dtype, target, binder.address(binder.storage.of(register))))
        words = range(start, start + width)
        if reduction.kind in ("argmax", "argmin"):
            places.append((start, start + 1))
        else:
            (extremes if reduction.kind in ("max", "min") else sums).extend(words)
        start += width
    flag = binder.backend.words(1).view(np.uint8)
    combine = _call(binder, "combine", combine_args(combines, binder.backend.workers))
    commands = [combine]
    if not alone:
        commands += _over_ranks(binder, totals, sums, extremes, places)
    commands += binder.backend.clear(flag)
    commands.append(_call(binder, "finish_reductions", finish_args(finishes, binder.address(flag))))
    bound = binder.reductions[id(apply.results)] = BoundReductions(tuple(accumulators), combine, commands, flag)
    binder.keep.append(apply)
    return bound


def _check_runs(binder: Binder, apply: Apply) -> None:
    """Raise LayoutError if the layout cuts runs of cells, on which the bits of sums of floats depend."""
    if apply.replicated or not sums_floats(apply.graph):
        return
    grid = lead_field(apply).grid
    layout = binder.storage.layout(grid)
    if not layout.aligned(RUN):
        cut = next(c for c in layout.cuts[-1] if c % RUN)
        raise LayoutError(
            f"apply({apply.label}) sums floats, which takes whole runs of {RUN} cells along {grid.axes[-1]!r}, but the "
            f"layout cuts that axis at {cut}",
            where=apply.graph.where or None,
            remedy=f"cut other axes, or {grid.axes[-1]!r} at multiples of {RUN} (granule={RUN}, which is the default)",
        )


def _call(binder: Binder, name: Helper, args: np.ndarray) -> cmd.Command:
    return binder.backend.helper(name, args, 1, cmd.Category.REDUCE, "reduce")


def _over_ranks(
    binder: Binder, totals: np.ndarray, sums: list[int], extremes: list[int], places: list[tuple[int, int]]
) -> list[cmd.Command]:
    """Return the integer collectives: one sum and one maximum, and one minimum of indices for positions of extremes."""
    commands: list[cmd.Command] = []
    if sums:
        commands += _gathered(binder, totals, sums, "sum")
    keys = [key for key, _ in places]
    if extremes or keys:
        winners = binder.backend.words(len(extremes) + len(keys), ranks=True)
        commands += _copy(binder, totals, extremes + keys, winners, range(len(winners)))
        commands += [*binder.backend.settled(), cmd.Allreduce(winners, "max")]
        commands += _copy(binder, winners, range(len(extremes)), totals, extremes)
        if keys:
            own, won = binder.address(totals), binder.address(winners) + 8 * len(extremes)
            items = [(own + 8 * k, won + 8 * n, own + 8 * i) for n, (k, i) in enumerate(places)]
            commands.append(_call(binder, "arg_candidates", candidate_args(items)))
            commands += _copy(binder, winners, range(len(extremes), len(winners)), totals, keys)
            commands += _gathered(binder, totals, [i for _, i in places], "min")
    return commands


def _gathered(binder: Binder, totals: np.ndarray, words: list[int], operation: str) -> list[cmd.Command]:
    """Return the commands of an allreduce of some words of the totals."""
    if words == list(range(words[0], words[0] + len(words))):
        part = totals[words[0] : words[0] + len(words)]
        return [*binder.backend.settled(), cmd.Allreduce(part, operation)]  # type: ignore[arg-type]
    buffer = binder.backend.words(len(words), ranks=True)
    return [
        *_copy(binder, totals, words, buffer, range(len(words))),
        *binder.backend.settled(),
        cmd.Allreduce(buffer, operation),  # type: ignore[arg-type]
        *_copy(binder, buffer, range(len(words)), totals, words),
    ]


def _copy(
    binder: Binder, source: np.ndarray, sources: list[int] | range, target: np.ndarray, targets: list[int] | range
) -> list[cmd.Command]:
    whence = binder.address(np.array([binder.address(source)], np.int64))
    whither = binder.address(np.array([binder.address(target)], np.int64))
    copies = [
        Copy(BoxAddress(whence, 8 * a, (8,)), BoxAddress(whither, 8 * b, (8,)), (1,), 8)
        for a, b in zip(sources, targets, strict=True)
    ]
    return copy_commands(copies, binder.backend, "reduce")
