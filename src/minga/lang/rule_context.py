"""The arguments of a rule: the cell and its neighbours, as expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from minga.errors import suggest
from minga.lang.cell import CellReader
from minga.lang.expr import Node, author_error, binary, cast, compare, const
from minga.lang.neighbourhood import Offset
from minga.lang.types import DType, integer_range, is_float
from minga.lang.window import pays, window_sum

__all__ = ["Cell", "Context", "RuleContext"]

STATES_OF_A_BYTE = 256


@dataclass(frozen=True, slots=True)
class Context:
    """The data behind `cell` and `near`: old values, neighbourhood in the grid's number of dimensions, and states.

    Attributes
    ----------
    rule
        Name of the rule.
    readers
        Old values of each field.
    around
        Offsets of the neighbours.
    neighbourhood
        Name of the neighbourhood.
    states
        Number of states, or None.
    weights
        Weights of the neighbourhood's cells, if it has any.
    in_place
        True if new values replace the old ones immediately, so that nothing can be computed ahead for a neighbour.
    """

    rule: str
    readers: Mapping[str, CellReader]
    around: tuple[Offset, ...]
    neighbourhood: str
    states: int | None
    weights: Mapping[Offset, int | float] = field(default_factory=dict)
    in_place: bool = False

    def reader(self, name: str | None, how: str) -> CellReader:
        """Return the field of that name, or the only field if `name` is None."""
        if name is None and len(self.readers) == 1:
            return next(iter(self.readers.values()))
        if name in self.readers:
            return self.readers[name]  # type: ignore[index]
        names = ", ".join(map(repr, self.readers))
        if name is None:
            raise author_error(f"rule {self.rule!r} has the fields {names}; which one is meant?", f"write {how}")
        close = suggest(str(name), self.readers)
        raise author_error(
            f"rule {self.rule!r} has no field {name!r}",
            f"did you mean {close!r}?" if close else f"its fields are {names}",
        )

    def here(self, reader: CellReader) -> Node:
        """Return the cell's own old value."""
        return reader[(0,) * len(reader.axes)]


class Cell:
    """The cell of a rule with several fields: `cell.u` is its old value of field u."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Node:
        context: Context = object.__getattribute__(self, "_context")
        return context.here(context.reader(name, "cell.u"))

    @property
    def node(self) -> Node:
        """Never available: `cell` alone has no value in a rule of several fields, so this raises an error."""
        return self._several()

    def _several(self, *_: object) -> Node:
        first = next(iter(self._context.readers))
        raise author_error(
            f"rule {self._context.rule!r} has several fields, so `cell` is not a value", f"name one: cell.{first}"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _several
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = __bool__ = __and__ = __or__ = __invert__ = _several
    __eq__ = __ne__ = _several  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class RuleContext:
    """The old values of the cell's neighbours. In a rule of several fields, every method takes the field's name."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    def __len__(self) -> int:
        """Return the number of neighbours of a cell."""
        return len(self._context.around)

    def __getitem__(self, key: object) -> Node:
        """Return one neighbour by its offsets: `near[-1, 0]`, or `near["u", -1, 0]` if there are several fields."""
        given = key if isinstance(key, tuple) else (key,)
        name = given[0] if given and isinstance(given[0], str) else None
        reader = self._context.reader(name, 'near["u", ...] with the field\'s name first')
        offsets = reader._offsets(given[1:] if name is not None else given)
        if not any(offsets):
            raise author_error("near[...] at offset 0 is the cell itself", "use the rule's first parameter, `cell`")
        if offsets not in self._context.around:
            raise author_error(
                f"{list(offsets)} is not in the neighbourhood {self._context.neighbourhood}",
                "declare a larger one: @mg.rule(neighbourhood=mg.moore(2)) or mg.offsets([...])",
            )
        return reader[offsets]

    def values(self, field: str | None = None) -> tuple[Node, ...]:
        """Return all neighbours in row-major order of their offsets."""
        reader = self._context.reader(field, 'near.values("u")')
        return tuple(reader[offset] for offset in self._context.around)

    def count(self, state: object, field: str | None = None) -> Node:
        """Return the number of neighbours that have this value, in the narrowest integer type that holds it."""
        reader = self._context.reader(field, 'near.count(1, "u")')
        kind = _counter(len(self))
        if self._context.states == 2 and isinstance(state, int) and state in (0, 1):
            ones = self._added(lambda offset: cast(reader[offset], kind))  # two states: a cell is its own count
            return ones if state else binary("sub", const(len(self), kind), ones)
        self._check_state(state)
        return self._added(lambda offset: cast(compare("eq", reader[offset], state), kind))

    def any(self, state: object, field: str | None = None) -> Node:
        """Return a bool that is true if at least one neighbour has this value."""
        self._check_state(state)
        return _fold("or", [compare("eq", value, state) for value in self.values(field)])

    def all(self, state: object, field: str | None = None) -> Node:
        """Return a bool that is true if every neighbour has this value."""
        self._check_state(state)
        return _fold("and", [compare("eq", value, state) for value in self.values(field)])

    def sum(self, field: str | None = None) -> Node:
        """Return the sum of the neighbours in row-major order; for bytes, in the narrowest type that holds it."""
        reader = self._context.reader(field, 'near.sum("u")')
        if is_float(reader.dtype):
            return _total(self.values(field))
        kind = reader.dtype
        if kind in ("u1", "bool"):
            kind = _counter(len(self) * self._largest())
        return self._added(lambda offset: cast(reader[offset], kind))

    def weighted(self, field: str | None = None) -> Node:
        """Return the weighted sum of the cells in row-major order, for the neighbourhood `mg.weights(array)`.

        The cell itself is included if the middle of the array is not 0. Bytes with integer weights are added in the
        narrowest integer type that holds every sum, those with other weights as f8.
        """
        weights = self._context.weights
        if not weights:
            raise author_error(
                f"the neighbourhood {self._context.neighbourhood} has no weights",
                "declare them: @mg.rule(neighbourhood=mg.weights([[1, 2, 1], [2, 0, 2], [1, 2, 1]]))",
            )
        reader = self._context.reader(field, 'near.weighted("u")')
        whole = all(isinstance(weight, int) for weight in weights.values())
        kind = reader.dtype
        if kind in ("u1", "bool"):
            sizes = [int(weight) * self._largest() for weight in weights.values()]
            kind = _holding(sum(min(size, 0) for size in sizes), sum(max(size, 0) for size in sizes)) if whole else "f8"
        return _total([_times(cast(reader[offset], kind), weight) for offset, weight in weights.items()])

    def _largest(self) -> int:
        return (self._context.states or STATES_OF_A_BYTE) - 1

    def _added(self, value: Callable[[Offset], Node]) -> Node:
        """Return the sum of an integer expression over the neighbours."""
        around = self._context.around
        shared = pays(around) and not self._context.in_place
        return window_sum(value, around) if shared else _total([value(offset) for offset in around])

    def max(self, field: str | None = None) -> Node:
        """Return the largest neighbour; NaN wins."""
        return _fold("max", self.values(field))

    def min(self, field: str | None = None) -> Node:
        """Return the smallest neighbour; NaN wins."""
        return _fold("min", self.values(field))

    def laplacian(self, field: str | None = None) -> Node:
        """Return the sum over the axes of u[-1] + u[+1] - 2 u: h² times the Laplacian for cells of width h.

        The two neighbours of an axis are added first, then the axes in order, and then 2·ndim·u is subtracted.
        """
        reader = self._context.reader(field, 'near.laplacian("u")')
        if not is_float(reader.dtype):
            raise author_error(
                f"near.laplacian needs floats, {reader.name!r} is {reader.dtype}",
                'write @mg.rule(dtype="f8") for a float cell',
            )
        ndim = len(reader.axes)
        pairs = []
        for axis in range(ndim):
            low, high = (tuple(step if a == axis else 0 for a in range(ndim)) for step in (-1, 1))
            pairs.append(binary("add", self._read(field, low), self._read(field, high)))
        return binary("sub", _total(pairs), binary("mul", 2.0 * ndim, self._context.here(reader)))

    def _read(self, field: str | None, offset: Offset) -> Node:
        return self[offset] if field is None else self[(field, *offset)]

    def _check_state(self, state: object) -> None:
        states = self._context.states
        if states is not None and isinstance(state, int) and not 0 <= state < states:
            raise author_error(
                f"no cell ever has state {state}: the rule has states 0 .. {states - 1}",
                f"declare more: @mg.rule(states={max(state, 0) + 1})",
            )

    def __iter__(self) -> object:
        raise author_error("`near` cannot be iterated", "loop over near.values()")

    def __call__(self, *_: object) -> None:
        """Raise an error, since a neighbour is read with square brackets."""
        raise author_error("near(...) calls the neighbourhood", "read a neighbour with square brackets: near[-1, 0]")


def _counter(largest: int) -> DType:
    """Return the narrowest cell type that can count up to this number."""
    return _holding(0, largest)


def _holding(least: int, most: int) -> DType:
    """Return the narrowest cell type that holds these two integers and all integers between them."""
    kinds: tuple[DType, ...] = ("u1", "i2", "i4", "i8")
    return next(kind for kind in kinds if integer_range(kind)[0] <= least and most <= integer_range(kind)[1])


def _times(value: Node, weight: int | float) -> Node:
    return value if weight == 1 else binary("mul", value, weight)


def _fold(op: str, values: Sequence[Node]) -> Node:
    result = values[0]
    for value in values[1:]:
        result = binary(op, result, value)
    return result


def _total(values: Sequence[Node]) -> Node:
    return _fold("add", values)
