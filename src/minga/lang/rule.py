"""`@rule`: a cellular automaton's rule as a function of a cell and its neighbours, which becomes an ordinary kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import CodeType, MappingProxyType
from typing import Any, overload

from minga.errors import KernelError
from minga.lang.cell import CellReader
from minga.lang.colours import as_colours
from minga.lang.expr import Node, cast, where
from minga.lang.kernel import Kernel
from minga.lang.neighbourhood import Neighbourhood, moore
from minga.lang.random import UPDATE_DRAW, chance
from minga.lang.result import checked_state
from minga.lang.rule_context import STATES_OF_A_BYTE, Cell, Context, RuleContext
from minga.lang.types import DType, as_dtype
from minga.lang.updates import SYNCHRONOUS, Asynchronous, Coloured, SecondOrder, Synchronous, Update, as_update

__all__ = ["Rule", "rule"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rule:
    """A rule that computes a cell's next value from its own value and those of its neighbours.

    Parameters
    ----------
    name
        Name of the rule; by default, the function's name.
    fields
        Cell type of each field, by name. A single field is called "cell" unless it was named.
    states
        Number of states; cells hold 0 .. states - 1. None for floats and wide integers.
    neighbourhood
        The cells that `near` offers.
    parameters
        Default values of the rule's keyword parameters.
    required
        Names of the keyword parameters without a default.
    kernel
        The kernel. It takes the fields (old values), then the fields again (new values), and the parameters.
    update
        The cells that change in a step. It is part of the kernel: with a coloured update, the kernel takes the fields
        once and changes them in place; with a second-order update, the new values initially hold the state before the
        old one.
    colours
        Colour of each state as "#rrggbb"; if empty, pictures choose the colours.
    """

    name: str
    fields: Mapping[str, DType]
    states: int | None
    neighbourhood: Neighbourhood
    parameters: Mapping[str, bool | int | float]
    required: tuple[str, ...]
    kernel: Kernel
    update: Update = SYNCHRONOUS
    colours: tuple[str, ...] = ()

    def updated(self, update: Update) -> Rule:
        """Return the same rule with another update.

        Parameters
        ----------
        update
            The update.

        Returns
        -------
        Rule
            The rule with that update.

        Raises
        ------
        KernelError
            If the rule's cells do not allow this update.
        """
        if update == self.update:
            return self
        body = self.kernel.function
        assert isinstance(body, _Body)
        return replace(self, kernel=Kernel(body.updated(update), name=self.name), update=update)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {dtype}" for name, dtype in self.fields.items())
        states = f", {self.states} states" if self.states else ""
        given = [f"{name}={value!r}" for name, value in self.parameters.items()]
        parameters = f", parameters {', '.join([*given, *self.required])}" if given or self.required else ""
        update = "" if isinstance(self.update, Synchronous) else f", {self.update}"
        return f"<rule {self.name} of {fields}{states}, {self.neighbourhood}{parameters}{update}>"


# Constructors of rules -----------------------------------------------------------------------------------------------
Function = Callable[..., object]


@overload
def rule(function: Function, /) -> Rule: ...
@overload
def rule(
    *,
    neighbourhood: Neighbourhood = ...,
    states: int | None = ...,
    dtype: object = ...,
    fields: Mapping[str, object] | Sequence[str] | None = ...,
    name: str | None = ...,
    update: Update = ...,
    colours: Sequence[str] = ...,
) -> Callable[[Function], Rule]: ...
def rule(
    function: Function | None = None,
    /,
    *,
    neighbourhood: Neighbourhood | None = None,
    states: int | None = None,
    dtype: object = None,
    fields: Mapping[str, object] | Sequence[str] | None = None,
    name: str | None = None,
    update: Update | str = SYNCHRONOUS,
    colours: Sequence[str] = (),
) -> Rule | Callable[[Function], Rule]:
    """Make a rule from a function of a cell, its neighbours, and keyword-only scalar parameters.

    Parameters
    ----------
    function
        Returns the cell's next value or, with several fields, a dict with a value for each. `mg.random()` gives a
        random number; all other functions and operators of kernels can be used, too.
    neighbourhood
        The neighbours that `near` offers: mg.moore(1) by default; also von_neumann, circular, hex, offsets, weights.
    states
        Number of states, at most 256; cells are bytes 0 .. states - 1. The default is 2 unless `dtype` or `fields` is
        given. With two states, the next value is 1 where the function's result is true, i.e. a true comparison or a
        positive number (~cell is negative: write 1 - cell). With more states, it must be evident from the function that
        the result is one of them: `% states`, mg.where, mg.min.
    dtype
        Cell type of fields that have none of their own; "f8" by default if fields are named.
    fields
        Names of the fields, or a mapping from names to cell types. With one field, `cell` is the value itself; with
        several, the values are cell.u, cell.v, ..., and methods of `near` take the name.
    name
        Name of the rule; by default, the function's name.
    update
        The cells that change in a step, by default all at once; see `minga.lang.updates`.
    colours
        The colour of each state in pictures: ("#f7f5ef", "#c8381e").

    Returns
    -------
    Rule or callable
        The rule or, if `function` is not given, a decorator that makes one.

    Raises
    ------
    KernelError
        If an argument is invalid.

    Examples
    --------
    ::

        @mg.rule(neighbourhood=mg.moore(1))
        def life(cell, near):
            n = near.count(1)
            return (n == 3) | ((cell == 1) & (n == 2))
    """
    chosen, when = neighbourhood or moore(1), as_update(update)

    def make(function: Function) -> Rule:
        where = _place(function)
        if not isinstance(chosen, Neighbourhood):
            raise KernelError(
                f"neighbourhood={chosen!r} is not a neighbourhood",
                where=where,
                remedy="write mg.moore(1), mg.von_neumann(1), ...",
            )
        kinds = _kinds(fields, dtype, states, where)
        count = states if states is not None or fields is not None or dtype is not None else 2
        plain = _make(function, name or str(getattr(function, "__name__", "rule")), kinds, count, chosen, where)
        return replace(plain.updated(when), colours=rule_colours(colours, count, where))

    return make if function is None else make(function)


def rule_colours(colours: Sequence[str], states: int | None, where: str) -> tuple[str, ...]:
    """Return the colours of a rule's states; raise KernelError if one is invalid or their number is wrong."""
    try:
        return as_colours(colours, states)
    except ValueError as error:
        remedy = "give one for each state, the first for state 0"
        raise KernelError(f"colours: {error}", where=where, remedy=remedy) from error


def _place(function: Function) -> str:
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else "?"


def _kinds(
    fields: Mapping[str, object] | Sequence[str] | None, dtype: object, states: int | None, where: str
) -> dict[str, DType]:
    """Return the cell type of each field."""
    if states is not None and not (isinstance(states, int) and 2 <= states <= STATES_OF_A_BYTE):
        raise KernelError(f"states={states!r}: a cell has 2 .. 256 states", where=where, remedy="use dtype= for more")
    default = dtype if dtype is not None else "u1" if fields is None or states is not None else "f8"
    if isinstance(fields, str):
        fields = (fields,)
    names = ("cell",) if fields is None else fields
    named = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names, default)
    if not named:
        raise KernelError("the rule has no fields", where=where, remedy='name them: fields=("u", "v")')
    kinds: dict[str, DType] = {}
    for name, kind in named.items():
        if not (isinstance(name, str) and name.isidentifier()) or name.startswith("_"):
            raise KernelError(f"{name!r} cannot be a field's name", where=where, remedy="use a word, such as u")
        try:
            kinds[name] = as_dtype(kind)
        except ValueError as error:
            raise KernelError(f"field {name!r}: {error}", where=where, remedy='e.g. fields={"u": "f8"}') from error
        if states is not None and kinds[name] != "u1":
            raise KernelError(
                f"field {name!r} is {kinds[name]}, but states={states} declares bytes",
                where=where,
                remedy="leave out states= or dtype=",
            )
    return kinds


def _make(
    function: Function,
    name: str,
    fields: dict[str, DType],
    states: int | None,
    neighbourhood: Neighbourhood,
    where: str,
) -> Rule:
    parameters, required = rule_parameters(function, name, fields)
    body = _Body(function, name, tuple(fields), parameters, required, neighbourhood, states)
    return Rule(
        name, MappingProxyType(fields), states, neighbourhood, MappingProxyType(parameters), required,
        Kernel(body, name=name),
    )  # fmt: skip


def rule_parameters(
    function: Function, name: str, fields: Mapping[str, DType], given: Sequence[str] = ("cell", "near")
) -> tuple[dict[str, bool | int | float], tuple[str, ...]]:
    """Return the defaults of a rule's keyword parameters, and the names of the parameters without one.

    `given` are the names of the positional parameters.
    """
    where = _place(function)
    defaults: dict[str, bool | int | float] = {}
    required = []
    positional = 0
    for item in inspect.signature(function).parameters.values():
        if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD) and item.default is item.empty:
            positional += 1
        elif item.kind is not item.KEYWORD_ONLY:
            raise KernelError(
                f"rule {name!r}: parameter {item.name!r} is neither {' nor '.join(given)}, nor keyword-only",
                where=where,
                remedy=f"put parameters after a star: def {name}({', '.join(given)}, *, {item.name}=...)",
            )
        elif item.name in fields or item.name.startswith("new_"):
            raise KernelError(
                f"rule {name!r}: parameter {item.name!r} has a field's name", where=where, remedy="rename the parameter"
            )
        elif item.default is item.empty:
            required.append(item.name)
        elif isinstance(item.default, bool | int | float):
            defaults[item.name] = item.default
        else:
            raise KernelError(
                f"rule {name!r}: parameter {item.name}={item.default!r} is not a number",
                where=where,
                remedy="parameters are numbers; let the function use other values from outside",
            )
    if positional != len(given):
        raise KernelError(
            f"rule {name!r} has {positional} positional parameters, a rule has {('one', 'two')[len(given) - 1]}",
            where=where,
            remedy=f"write def {name}({', '.join(given)}): ...",
        )
    return defaults, tuple(required)


class _Body:
    """The function of a rule's kernel: makes `cell` and `near`, calls the author's function and stores the result."""

    def __init__(
        self,
        function: Function,
        name: str,
        fields: tuple[str, ...],
        parameters: Mapping[str, bool | int | float],
        required: tuple[str, ...],
        neighbourhood: Neighbourhood,
        states: int | None,
        update: Update = SYNCHRONOUS,
    ) -> None:
        self.function, self.fields, self.neighbourhood, self.states = function, fields, neighbourhood, states
        self.update = update
        self.__name__ = name
        self.__doc__ = function.__doc__
        self.__code__: CodeType | None = getattr(function, "__code__", None)  # errors point at the author's function
        parameter, kind = inspect.Parameter, inspect.Parameter.KEYWORD_ONLY
        names = fields if isinstance(update, Coloured) else (*fields, *(f"new_{f}" for f in fields))
        both = [parameter(f, parameter.POSITIONAL_OR_KEYWORD) for f in names]
        self.__signature__ = inspect.Signature([*both, *(parameter(s, kind) for s in (*parameters, *required))])
        self.__kwdefaults__ = dict(parameters)
        self._required = required

    def updated(self, update: Update) -> _Body:
        """Return the same function with another update."""
        if isinstance(update, SecondOrder) and self.states is None:
            raise self._error(
                "has no number of states: a second-order update subtracts modulo this number",
                "declare it, @mg.rule(states=...); with floats, write the rule with two fields, u and the previous u",
            )
        return _Body(
            self.function, self.__name__, self.fields, self.__kwdefaults__, self._required, self.neighbourhood,
            self.states, update,
        )  # fmt: skip

    def __call__(self, *readers: CellReader, **scalars: Node) -> None:
        count = len(self.fields)
        old = dict(zip(self.fields, readers[:count]))
        ndim = len(readers[0].axes)
        if self.neighbourhood.ndim not in (None, ndim):
            raise self._error(
                f"looks at {self.neighbourhood} in {self.neighbourhood.ndim} dimensions, the grid has {ndim}",
                f"use a grid of {self.neighbourhood.ndim} dimensions, or mg.moore(r), which fits any",
            )
        around = self.neighbourhood.around(ndim)
        in_place = isinstance(self.update, Coloured)
        context = Context(
            self.__name__, old, around, str(self.neighbourhood), self.states, self.neighbourhood.weights, in_place
        )
        cell: Any = context.here(readers[0]) if count == 1 else Cell(context)
        result = self.function(cell, RuleContext(context), **scalars)
        states = [
            checked_state(value, repr(name), self.states, count, self._error) for name, value in self._values(result)
        ]
        here = (0,) * ndim
        for state, reader, target in zip(states, readers, readers[-count:]):
            target[here] = self._updated(state, reader[here], target[here])

    def _updated(self, state: Node, old: Node, before: Node) -> Node:
        """Return the next value of a cell whose next state would be `state` in a synchronous step."""
        match self.update:
            case Asynchronous(probability):
                awake = chance(probability, UPDATE_DRAW)
                return state if awake is True else where(awake, state, old)
            case SecondOrder():
                number = cast(state, "u1")
                if self.states == 2:
                    return number ^ before
                total = cast(number, "i2") + (self.states or 0) - cast(before, "i2")
                return cast(total % (self.states or 1), "u1")
        return state

    def _values(self, result: object) -> list[tuple[str, object]]:
        """Return the next value of each field, in the order of the fields."""
        if len(self.fields) == 1 and not isinstance(result, Mapping):
            result = {self.fields[0]: result}
        shape = "{" + ", ".join(f'"{f}": ...' for f in self.fields) + "}"
        if not isinstance(result, Mapping):
            raise self._error(f"returns {type(result).__name__}", f"return a value for each field: return {shape}")
        if set(result) != set(self.fields):
            raise self._error(
                f"returns values for {', '.join(map(repr, result)) or 'nothing'}; "
                f"its fields are {', '.join(map(repr, self.fields))}",
                f"return {shape}; a field that stays keeps cell.{self.fields[0]}",
            )
        return [(name, result[name]) for name in self.fields]

    def _error(self, message: str, remedy: str) -> KernelError:
        return KernelError(f"rule {self.__name__!r} {message}", where=_place(self.function), remedy=remedy)
