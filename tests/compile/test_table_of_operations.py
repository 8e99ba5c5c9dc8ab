"""The table of operations is complete, and an operation is one entry in each of its two halves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minga import kernel
from minga.compile import operations as spelled
from minga.compile.operations import SPELLINGS, Spelling, spelling
from minga.errors import KernelError
from minga.lang import operations
from minga.lang.analysis import flops
from minga.lang.derivative import derivative
from minga.lang.expr import BITWISE, COMPARISONS, Node, as_node
from minga.lang.narrow import intervals
from minga.lang.operations import OPERATIONS, Operation, operation

from .helpers import assert_equal_bits, make_case, traced

PRINTERS_ONLY = {"quotient", "shift_left", "shift_right", "truncate"}
LOOPS = {"iterate", "iterated"}
LOADED = {"lookup"}
"""Printers load these from memory: they are no instruction."""


def test_what_the_language_knows_is_computed_by_all() -> None:
    computed = {name for name, known in OPERATIONS.items() if known.arity != 0} - LOOPS
    assert computed == set(SPELLINGS) - PRINTERS_ONLY
    for name in computed:
        found = SPELLINGS[name]
        assert found.numpy is not Spelling().numpy, name
        assert name in LOADED or found.llvm or found.lowered, name
    assert all(SPELLINGS[name].llvm for name in PRINTERS_ONLY)


def test_groups_of_operations_are_in_the_table() -> None:
    assert {*COMPARISONS, *BITWISE} <= set(OPERATIONS)
    assert all(OPERATIONS[name].flops == 0 for name in (*COMPARISONS, *BITWISE))


def test_an_unknown_operation_is_an_error_and_not_for_free() -> None:
    with pytest.raises(KernelError, match=r"there is no operation 'popcuont' of kernels; did you mean 'popcount'\?"):
        operation("popcuont")

    @kernel
    def unknown(u: Any, new: Any) -> None:
        new[0] = Node("hypot", "f8", (as_node(u[0]),))

    graph = traced(unknown, 1, ["f8", "f8"])
    for use in (flops, make_case_and_run):
        with pytest.raises(KernelError, match="there is no operation 'hypot' of kernels"):
            use(graph)


def make_case_and_run(graph: Any) -> None:
    assert_equal_bits(make_case(graph, (9,)))


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["u1", "i4", "f8"])
def test_a_new_operation_is_two_entries(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """One for the language, one for NumPy and LLVM, from which PTX comes."""
    monkeypatch.setitem(
        operations.OPERATIONS,
        "twice",
        Operation(
            1, 1, lambda _, a: (2 * a[0], 2 * a[1]), narrows=True, derivative=lambda _, a: a.apply(lambda s: s * 2.0)
        ),
    )
    monkeypatch.setitem(
        spelled.SPELLINGS,
        "twice",
        Spelling(
            lambda node, x: x + x,
            lambda body, node, x: f"{'fadd' if node.dtype == 'f8' else 'add'} {body.type(node.dtype)} {x}, {x}",
        ),
    )

    @kernel
    def double(u: Any, new: Any) -> None:
        new[0] = Node("twice", dtype, (as_node(u[0]),))  # type: ignore[arg-type]

    graph = traced(double, 1, [dtype, dtype])
    assert flops(graph) == 1
    assert_equal_bits(make_case(graph, (100,)))
    assert ".visible .entry kernel" in double.source("ptx")
    assert spelling("twice").lowered is None
    if dtype == "u1":
        assert intervals(graph)[id(graph.stores[0].value)] == (0, 255)  # it may wrap around
    if dtype == "f8":

        @kernel
        def slope(u: Any, new: Any) -> None:
            new[0] = derivative(Node("twice", "f8", (as_node(u[0]),)), u[0])

        case = make_case(traced(slope, 1, ["f8", "f8"]), (9,))
        assert_equal_bits(case)
        assert np.isfinite(case.arrays[0].array).any()
