"""Rewriting a graph so that every node is one defined machine operation, by the table in minga.compile.operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from minga.compile.operations import spelling
from minga.lang.expr import Node
from minga.lang.graph import Interner, KernelGraph
from minga.lang.loop import rewritten, with_bodies


def lower(graph: KernelGraph, *, rounding: bool = True) -> KernelGraph:
    """Rewrite a graph in operations that a printer can print.

    Parameters
    ----------
    graph
        The graph of a kernel.
    rounding
        True if floor, ceil, trunc and rint are instructions of the processor.
    """
    graph = rewrite(graph, lambda node: rule(node) if (rule := spelling(node.op).lowered) else node)
    if not rounding:
        graph = rewrite(graph, lambda node: rule(node) if (rule := spelling(node.op).without_rounding) else node)
    return graph


def rewrite(graph: KernelGraph, rule: Callable[[Node], Node]) -> KernelGraph:
    """Replace every node by the result of `rule`, which is called with a node whose arguments are replaced already."""
    new, share = rewritten(graph.roots, rule), Interner()
    return replace(
        graph,
        stores=tuple(replace(store, value=share(new[id(store.value)])) for store in graph.stores),
        reductions=tuple(replace(item, value=share(new[id(item.value)])) for item in graph.reductions),
        locals=tuple(share(new[id(node)]) for node in graph.locals),
    )


def uses_fma(graph: KernelGraph) -> bool:
    """Return True if the kernel uses a * b + c with a single rounding (mg.fma)."""
    return any(node.op == "fma" for node in with_bodies(graph.nodes()))
