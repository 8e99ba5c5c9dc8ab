"""Cells inside a kernel: reads and stores of fields, named intermediates, and reductions over all cells."""

from __future__ import annotations

from dataclasses import dataclass

from minga.errors import shown
from minga.lang.expr import Node, as_node, author_error, cast
from minga.lang.graph import ReductionKind
from minga.lang.trace import current_trace
from minga.lang.types import DType, is_float


@dataclass(frozen=True, slots=True, eq=False)
class CellReader:
    """A field inside a kernel: `u[di, dj]` reads a neighbour, `u[0, 0] = value` records a store."""

    name: str
    parameter: int
    dtype: DType
    axes: tuple[int, ...]
    strides: tuple[int, ...]
    numbers: str = "declare it after * in the parameters"
    """The remedy for a parameter that is meant to be a number, in messages; empty: none is."""

    def strided(self, *strides: int) -> CellReader:
        """Return the same field accessed at `stride * index + offset`, to couple grids of different resolution.

        Parameters
        ----------
        *strides
            One positive integer for all axes, or one for each axis.
        """
        each = strides * len(self.axes) if len(strides) == 1 else strides
        if len(each) != len(self.axes) or any(not isinstance(s, int) or s < 1 for s in each):
            raise author_error(
                f"{self.name}.strided{shown(strides)}: expected one positive integer, or {len(self.axes)} of them",
                f"e.g. {self.name}.strided(2)",
            )
        return CellReader(self.name, self.parameter, self.dtype, self.axes, tuple(each))

    def _offsets(self, key: object) -> tuple[int, ...]:
        given = key if isinstance(key, tuple) else (key,)
        count = len(self.axes)
        if len(given) != count:
            raise author_error(
                f"{self.name}[{', '.join(map(shown, given))}] has {len(given)} offsets; {self.name!r} has {count} axes",
                f"write {self.name}[{', '.join(['0'] * count)}] for the cell itself",
            )
        for item in given:
            if isinstance(item, Node):
                raise author_error(
                    f"{self.name}: an offset depends on a cell's value",
                    "offsets are constants; choose between neighbours with mg.where",
                )
            if isinstance(item, slice):
                raise author_error(f"{self.name}: slices are not offsets", "a kernel describes one cell: use integers")
            if isinstance(item, bool) or not hasattr(item, "__index__"):
                raise author_error(
                    f"{self.name}: offset {shown(item)} is not an integer", "offsets count cells: -1, 0, 1, ..."
                )
        return tuple(item.__index__() for item in given)

    def __getitem__(self, key: object) -> Node:
        offsets = self._offsets(key)
        trace = current_trace(f"{self.name}[...]")
        stored = trace.stores.get((self.parameter, self.strides, offsets))
        if stored is not None:
            if trace.ordered:
                return stored
            cell = f"{self.name}[{', '.join(map(str, offsets))}]"
            raise author_error(
                f"{cell} is read after this kernel stored it, and reads see the old values",
                f"compute the whole value first and store it once: total = ...; total = total + ...; {cell} = total",
            )
        return Node("read", self.dtype, data=(self.parameter, self.strides, offsets))

    def __setitem__(self, key: object, value: object) -> None:
        offsets = self._offsets(key)
        trace = current_trace(f"{self.name}[...] = ...")
        for offset, stride in zip(offsets, self.strides, strict=True):
            if not 0 <= offset < stride:
                raise author_error(
                    f"{self.name}[{', '.join(map(str, offsets))}] = ... stores into a neighbour",
                    "a kernel stores its own cell (offset 0): turn the scatter into a gather by reading neighbours",
                )
        if len(self.axes) != trace.ndim:
            raise author_error(
                f"{self.name!r} lacks axes of the iteration, so many cells would store the same value",
                "store a field with all axes, or use a reduction",
            )
        node = as_node(value)
        whole = node.op == "const" and float(node.data).is_integer()  # 2.0 may stand for 2
        if is_float(node.dtype) and not is_float(self.dtype) and not (node.weak and whole):
            raise author_error(
                f"{self.name} is {self.dtype}, the value is {node.dtype}", f"write mg.cast(value, {self.dtype!r})"
            )
        if self.dtype != "bool" and node.dtype == "bool" and is_float(self.dtype):
            node = cast(node, "u1")
        trace.stores[self.parameter, self.strides, offsets] = cast(node, self.dtype)

    def __call__(self, *_: object) -> None:
        """Raise an error, since a field is not a function."""
        raise author_error(f"{self.name}(...) calls a field", f"read a cell with square brackets: {self.name}[0, ...]")

    @property
    def node(self) -> Node:
        """Never available (`as_node` asks for it): a field without an offset has no value, so this raises an error."""
        cell = f"{self.name}[{', '.join(['0'] * len(self.axes))}]"
        raise author_error(
            f"field {self.name!r} is used without an offset",
            f"read a cell of it: {cell}" + (f"; if {self.name} is a number, {self.numbers}" if self.numbers else ""),
        )

    def _no_arithmetic(self, *_: object) -> Node:
        return self.node

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_arithmetic
    __neg__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __and__ = __or__ = __invert__ = _no_arithmetic
    __pow__ = __mod__ = __floordiv__ = __rpow__ = __rmod__ = __rfloordiv__ = __rand__ = __ror__ = _no_arithmetic
    __eq__ = __ne__ = _no_arithmetic  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __iter__(self) -> object:
        raise author_error(f"field {self.name!r} cannot be iterated", "loop over constant offsets")


@dataclass(frozen=True, slots=True)
class Local:
    """A named intermediate that may be read at offsets."""

    number: int
    dtype: DType
    ndim: int
    definition: Node

    @property
    def node(self) -> Node:
        """The value at the cell itself, for a local that is used without offsets."""
        return self[(0,) * self.ndim]

    def __getitem__(self, key: object) -> Node:
        reader = CellReader(f"local {self.number}", -1, self.dtype, tuple(range(self.ndim)), (1,) * self.ndim)
        offsets = reader._offsets(key)
        return Node("local", self.dtype, (), (self.number, offsets))


def local(value: object) -> Local:
    """Name an intermediate so that it can be read at offsets: `g = mg.local(u[0,1] - u[0,-1]); g[1,0] - g[-1,0]`.

    The intermediate is computed once per cell (again at tile edges), and the halo is widened automatically.

    Parameters
    ----------
    value
        The expression to name.

    Returns
    -------
    Local
        The intermediate, which can be read at constant offsets like a field.

    Raises
    ------
    KernelError
        If called outside a kernel, or in an ordered kernel.
    """
    trace = current_trace("mg.local")
    if trace.ordered:
        raise author_error("mg.local in an ordered kernel", "write the expression out: its value depends on the order")
    node = as_node(value)
    node = cast(node, node.dtype)
    trace.locals.append(node)
    return Local(len(trace.locals) - 1, node.dtype, trace.ndim, node)


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """The result of a reduction call inside a kernel; the kernel must return it."""

    kind: ReductionKind
    value: Node

    @property
    def node(self) -> Node:
        """Never available (`as_node` asks for it): there is no result yet while cells are computed."""
        raise author_error(
            f"the result of a reduction ({self.kind}) is known only after all cells are done",
            "return it from the kernel and use the register in a later operation",
        )

    def _not_a_value(self, *_: object) -> Node:
        return self.node

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _not_a_value
    __eq__ = __ne__ = _not_a_value  # type: ignore[assignment]
    __hash__ = object.__hash__
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = __bool__ = _not_a_value
