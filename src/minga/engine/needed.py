"""The kernels that a schedule needs, known before any of them is bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from minga.engine.operations import Let
from minga.engine.schedule import Branch, Item, Loop, Stage
from minga.lang.graph import KernelGraph

__all__ = ["kernels_of"]


def kernels_of(items: Iterable[Item]) -> Iterator[tuple[KernelGraph, bool]]:
    """Yield the graphs of kernels that are called as they are, each with whether it has reductions to compute.

    Sweeps, strided parts and ghost cells have kernels of their own, which only binding makes.
    """
    for item in items:
        match item:
            case Stage(apply=apply):
                order = apply.graph.order
                if (order is None or order.kind == "red-black") and apply.cells.stride is None:
                    yield apply.graph, bool(apply.graph.reductions)
            case Let(graph=graph):
                yield graph, False
            case Branch(body=body, condition=condition):
                yield condition.graph, False
                yield from kernels_of(body)
            case Loop(rounds=rounds, until=until):
                if until is not None:
                    yield until.graph, False
                for body in rounds:
                    yield from kernels_of(body)
            case _:
                pass
