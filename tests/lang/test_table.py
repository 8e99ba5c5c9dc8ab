"""Constant tables in kernels: types, ends, what rules can prove of them, and mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.errors import KernelError
from minga.lang.graph import KernelGraph
from minga.lang.kernel import FieldType, Kernel, Signature
from minga.lang.narrow import narrow


def graph_of(function: object, *kinds: str) -> KernelGraph:
    return Kernel(function).graph(Signature(1, tuple(FieldType(kind, (0,)) for kind in kinds), ()))  # type: ignore[arg-type]


def entry_of(table: object, dtype: str = "u1") -> object:
    seen: list[object] = []

    def look(u: mg.Kernel, new: mg.Kernel) -> None:
        seen.append(mg.lookup(table, u[0]))  # type: ignore[arg-type, index]
        new[0] = mg.cast(seen[0], "f8")  # type: ignore[index]

    graph_of(look, dtype, "f8")
    return seen[0].dtype  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("table", "dtype"),
    [
        ([0, 255], "u1"), ([-1, 7], "i2"), ([0, 256], "i2"), ([70000], "i4"), ([2**40], "i8"), ([2**63], "u8"),
        ([0.5, 1], "f8"), ([True, False], "bool"), (np.zeros(3, np.float32), "f4"), (np.zeros(3, np.int64), "i8"),
    ],
)  # fmt: skip
def test_a_tables_type_is_its_arrays_or_the_narrowest(table: object, dtype: str) -> None:
    assert entry_of(table) == dtype


def test_tables_of_equal_content_are_one_node_and_one_digest() -> None:
    def twice(u, new):  # type: ignore[no-untyped-def]
        new[0] = mg.lookup([1, 2, 3], u[0]) + mg.lookup((1, 2, 3), u[0])

    def other(u, new):  # type: ignore[no-untyped-def]
        new[0] = mg.lookup([1, 2, 4], u[0]) + mg.lookup((1, 2, 4), u[0])

    graph = graph_of(twice, "u1", "u1")
    assert sum(node.op == "lookup" for node in graph.nodes()) == 1
    assert graph.digest() != graph_of(other, "u1", "u1").digest()


def test_an_index_that_is_seen_to_be_inside_is_not_compared() -> None:
    def look(u, new):  # type: ignore[no-untyped-def]
        new[0] = mg.lookup(range(16), u[0] & 15)

    assert not {"min", "max"} & {node.op for node in narrow(graph_of(look, "u1", "u1")).nodes()}


@pytest.mark.slow
def test_a_rule_may_return_entries_that_are_states() -> None:
    @mg.rule(states=4)
    def good(cell, near):  # type: ignore[no-untyped-def]
        return mg.lookup([0, 2, 3, 1], cell)

    @mg.rule(states=3)
    def bad(cell, near):  # type: ignore[no-untyped-def]
        return mg.lookup([0, 2, 3, 1], cell)

    history = mg.run(mg.automaton(good, (4, 4), init={"fill": 1}), 4, every=1)
    assert [int(frame[0, 0]) for frame in history.cell] == [1, 2, 3, 1, 2]
    with pytest.raises(KernelError, match="can return 3"):
        mg.automaton(bad, (4, 4), init={"fill": 1})


def test_bits_of_negative_numbers_are_counted_in_twos_complement() -> None:
    @mg.rule(dtype="i4")
    def bits(cell, near):  # type: ignore[no-untyped-def]
        return mg.popcount(cell)

    cells = np.array([[-1, 0, 5, -2147483648]], np.int32)
    history = mg.run(mg.automaton(bits, (1, 4), init=cells), 1)
    assert history.cell[-1].values.tolist() == [[32, 0, 2, 1]]


@pytest.mark.parametrize(
    ("table", "said"),
    [([], "1 to"), ([[1, 2], [3, 4]], "one dimension"), (["a"], "numbers"), ([1 << 70], "number"), ([1j], "complex")],
)
def test_a_table_that_cannot_be_is_refused(table: object, said: str) -> None:
    with pytest.raises(KernelError, match=said):
        entry_of(table)


def test_an_index_is_a_whole_number() -> None:
    with pytest.raises(KernelError, match=r"mg\.lookup: the index is f8"):
        entry_of([1, 2], "f8")


def test_floats_have_no_bits_to_count() -> None:
    @mg.rule(dtype="f8")
    def bits(cell, near):  # type: ignore[no-untyped-def]
        return mg.popcount(cell)

    with pytest.raises(KernelError, match=r"mg\.popcount needs an integer"):
        mg.automaton(bits, (4, 4), init={"fill": 1})
