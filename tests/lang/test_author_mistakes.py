"""Mistakes that authors of kernels make: each is named, placed at its line, and comes with a remedy.

Every kernel below is wrong in the line marked `# here`; what follows the mark are words that the error must contain:
first those of the message, then, after `->`, those of the remedy.
"""

from __future__ import annotations

import builtins
import inspect
import math
import random as pythons
import re
from collections.abc import Callable

import numpy as np
import pytest

from minga.errors import KernelError
from minga.lang import cell as cells
from minga.lang import functions as mg
from minga.lang.graph import KernelGraph
from minga.lang.kernel import FieldType, Kernel, ScalarType, Signature
from minga.lang.math import exp
from minga.lang.random import random

MISTAKES: list[tuple[Callable[..., object], dict[str, object]]] = []


def mistake(function: Callable[..., object] | None = None, **options: object) -> Callable[..., object]:
    """Collect a wrong kernel; `options` are those of mg.kernel."""
    if function is None:
        return lambda f: mistake(f, **options)
    MISTAKES.append((function, options))
    return function


GENERATOR = np.random.default_rng(1)


# Chance of another kind ----------------------------------------------------------------------------------------------
@mistake
def chance_of_python(u, new):  # here: only once for all cells and steps -> mg.random()
    new[0, 0] = u[0, 0] + pythons.random()


@mistake
def chance_of_numpy(u, new):  # here: only once for all cells and steps -> mg.random()
    new[0, 0] = u[0, 0] + np.random.rand()  # noqa: NPY002


@mistake
def chance_of_a_generator(u, new):  # here: only once for all cells and steps -> mg.random()
    new[0, 0] = u[0, 0] + GENERATOR.random()


# Names that are not there --------------------------------------------------------------------------------------------
@mistake
def misspelt_function(u, new):
    new[0, 0] = mg.wher(u[0, 0] > 0, 1, 0)  # here: wher -> did you mean 'where'


# Choosing with Python instead of mg.where ----------------------------------------------------------------------------
@mistake
def if_on_a_cell(u, new):
    if u[0, 0] > 0:  # here: not known while the kernel is traced -> mg.where
        new[0, 0] = 1


@mistake
def and_of_cells(u, new):
    new[0, 0] = u[0, 0] > 0 and u[0, 1] > 0  # here: Python cannot decide -> & | ~


@mistake
def not_a_cell(u, new):
    new[0, 0] = not u[0, 0]  # here: Python cannot decide -> ~


@mistake
def chained_comparison(u, new):
    new[0, 0] = 0 < u[0, 0] < 3  # here: chained comparisons -> (a < b) & (b < c)


@mistake
def membership(u, new):
    new[0, 0] = u[0, 0] in (2, 3)  # here: Python cannot decide -> mg.where


@mistake
def builtin_max(u, new):
    new[0, 0] = builtins.max(u[0, 0], u[0, 1])  # here: min, max -> mg.min and mg.max


@mistake
def while_on_a_cell(u, new):
    x = u[0, 0]
    while x > 1:  # here: while -> mg.where
        x = x / 2
    new[0, 0] = x


@mistake
def loop_over_a_value(u, new):
    for k in range(u[0, 0]):  # here: loop bound -> constant
        new[0, 0] = k


# Fields and offsets --------------------------------------------------------------------------------------------------
@mistake
def too_few_offsets(u, new):
    new[0, 0] = u[1]  # here: u[1] has 1 offsets; 'u' has 2 axes -> u[0, 0]


@mistake
def too_many_offsets(u, new):
    new[0, 0, 0] = u[0, 0]  # here: new[0, 0, 0] has 3 offsets -> new[0, 0]


@mistake
def half_an_offset(u, new):
    new[0, 0] = u[0.5, 0]  # here: offset 0.5 is not an integer -> offsets count cells


@mistake
def offset_from_a_cell(u, new):
    new[0, 0] = u[new[0, 0], 0]  # here: an offset depends on a cell's value -> mg.where


@mistake
def slice_of_a_field(u, new):
    new[0, 0] = u[1:, 0]  # here: slices are not offsets -> one cell


@mistake
def field_without_offset(u, new):
    new[0, 0] = u + 1  # here: 'u' is used without an offset -> u[0, 0]


@mistake
def whole_field_stored(u, new):
    new[0, 0] = u  # here: 'u' is used without an offset -> u[0, 0]


@mistake
def whole_field_compared(u, new):
    new[0, 0] = mg.where(u == 0, 1, 2)  # here: 'u' is used without an offset -> u[0, 0]


@mistake
def whole_field_differs(u, new):
    new[0, 0] = mg.where(u != 0, 1, 2)  # here: 'u' is used without an offset -> u[0, 0]


@mistake
def number_among_the_fields(u, dt):
    u[0, 0] = u[0, 0] * dt  # here: 'dt' is used without an offset -> after *


@mistake
def field_among_the_numbers(u, new, *, h):
    u[0, 0] = h[0, 0]  # here: subscriptable -> before *


@mistake
def field_iterated(u, new):
    new[0, 0] = sum(u)  # here: 'u' cannot be iterated -> offsets


@mistake
def field_called(u, new):
    new[0, 0] = u(0, 0)  # here: calls a field -> square brackets


@mistake
def attribute_of_a_field(u, new):
    new[0, 0] = u.shape[0]  # here: shape -> read and store cells


@mistake
def attribute_set(u, new):
    new.value = u[0, 0]  # here: an attribute is assigned -> store into a cell


@mistake
def store_into_a_neighbour(u, new):
    new[0, 1] = u[0, 0]  # here: new[0, 1] = ... stores into a neighbour -> gather


@mistake
def stride_of_zero(u, new):
    new[0, 0] = u.strided(0)[0, 0]  # here: expected one positive integer -> strided(2)


# Types ---------------------------------------------------------------------------------------------------------------
@mistake
def store_into_a_number(u, new, *, n):
    n[0, 0] = u[0, 0] * 0.5  # here: does not support item assignment -> before *


@mistake
def float_into_bytes(u, mask):
    mask[0, 0] = u[0, 0]  # here: mask is u1, the value is f8 -> mg.cast(value, 'u1')


@mistake
def precedence_of_and(u, new):
    new[0, 0] = u[0, 0] > 1 & u[0, 1] < 2  # here: and needs bools or integers -> parentheses


@mistake
def shift_of_a_float(u, new):
    new[0, 0] = u[0, 0] << 1  # here: shifts need integers, found f8 -> mg.cast


@mistake
def complement_of_a_float(u, new):
    new[0, 0] = ~u[0, 0]  # here: ~ needs a bool or an integer, found f8 -> compare first


@mistake
def difference_of_bools(u, new):
    new[0, 0] = (u[0, 0] > 0) - (u[0, 1] > 0)  # here: bools cannot be combined with sub -> mg.cast


@mistake
def negative_bool(u, new):
    new[0, 0] = -(u[0, 0] > 0)  # here: a bool has no negative -> ~x


@mistake
def number_too_large(u, mask):
    mask[0, 0] = mask[0, 0] + 300  # here: 300 does not fit into u1 -> wider type


@mistake
def unknown_type(u, new):
    new[0, 0] = mg.cast(u[0, 0], "float16")  # here: 'float16' -> cell types


@mistake
def power_of_a_cell(u, new):
    new[0, 0] = u[0, 0] ** (u[0, 1] > 0.5)  # here: the exponent is not a number -> x**y


@mistake
def text_in_an_expression(u, new):
    new[0, 0] = u[0, 0] + "1"  # here: str '1' cannot be part -> numbers


@mistake
def array_in_an_expression(u, new):
    new[0, 0] = u[0, 0] * np.ones(3)  # here: an array of shape -> fields


# Functions of other modules ------------------------------------------------------------------------------------------
@mistake
def math_module(u, new):
    new[0, 0] = math.sqrt(u[0, 0])  # here: cannot become a Python float -> mg.


@mistake
def numpy_function(u, new):
    new[0, 0] = np.sqrt(u[0, 0])  # here: np.sqrt cannot act -> mg.


@mistake
def int_of_a_cell(u, new):
    new[0, 0] = int(u[0, 0])  # here: cannot become a Python int -> mg.cast(x, 'i4')


@mistake
def unknown_name(u, new):
    new[0, 0] = u[0, 0] * undeclared  # here: undeclared -> declare the name  # noqa: F821


@mistake
def missing_argument(u, new):
    new[0, 0] = mg.where(u[0, 0] > 0, 1)  # here: otherwise -> check this line


@mistake
def unknown_axis(u, new):
    new[0, 0] = mg.index("z")  # here: no axis 'z' -> 'y', 'x'


@mistake
def index_in_a_local_at_neighbours(u, new):  # here: depends on mg.index or mg.random -> store it in a field
    noise = cells.local(u[0, 0] + mg.index(0))
    new[0, 0] = noise[0, 1]


@mistake
def axis_too_large(u, new):
    new[0, 0] = mg.index(2)  # here: no axis 2 in 2 dimensions -> 0 .. 1


@mistake
def flush_of_an_integer(u, mask):
    mask[0, 0] = mg.flush(mask[0, 0])  # here: mg.flush needs a float, found u1 -> no denormals


# Reductions and the kernel as a whole --------------------------------------------------------------------------------
@mistake
def reduction_used_as_a_value(u, new):
    new[0, 0] = u[0, 0] / mg.max(u[0, 0])  # here: known only after all cells are done -> return it


@mistake
def reduction_compared(u, new):
    new[0, 0] = mg.max(u[0, 0]) == 0  # here: known only after all cells are done -> return it


@mistake
def value_returned(u, new):  # here: returns Node -> mg.max
    return u[0, 0] + new[0, 0]


@mistake
def nothing_done(u, new):  # here: neither stores nor returns anything -> assign to a cell
    u[0, 0] + new[0, 0]


@mistake
def any_number_of_fields(*fields):  # here: takes *fields -> list of fields
    fields[0][0, 0] = 1


@mistake
def no_fields(*, h):  # here: has no fields -> positional parameters are fields
    return h


@mistake
def one_field_too_many(u, new, old):  # here: takes 3 fields (u, new, old), found 2 -> one field
    new[0, 0] = u[0, 0]


@mistake(order="red-black")
def diagonal_of_the_same_colour(u, new):  # here: red-black: u[1, 1] is a cell of the same colour -> drop
    u[0, 0] = u[1, 1] * 0.5 + new[0, 0]


@mistake(order={"x": 2})
def direction_of_two(u, new):  # here: direction 2 of axis 'x' -> +1 or -1
    u[0, 0] = u[0, -1]


@mistake(order="columns")
def unknown_order(u, new):  # here: order='columns' -> lexicographic
    u[0, 0] = u[0, -1]


@mistake(across="sometimes")
def unknown_across(u, new):  # here: across='sometimes' -> exact
    u[0, 0] = u[0, -1]


@mistake(order={"x": 1})
def local_in_a_sweep(u, new):
    g = cells.local(u[0, -1] * 2)  # here: mg.local in an ordered kernel -> write the expression out
    u[0, 0] = g[0, 0]


@mistake
def two_strides(u, new):  # here: 'new' is stored with two different strides -> one stride
    new[0, 0] = u[0, 0]
    new.strided(2)[1, 1] = u[0, 0]


def traced(function: Callable[..., object], options: dict[str, object]) -> KernelGraph:
    """On two fields of two axes: the first f8, the second u1 if a parameter is called `mask`."""
    kernel = Kernel(function, **options)
    second = "u1" if "mask" in kernel.fields else "f8"
    fields = (FieldType("f8", (0, 1)), FieldType(second, (0, 1)))
    return kernel.graph(Signature(2, fields, tuple((name, ScalarType("f8", True)) for name in kernel.scalars)))


def place_and_words(function: Callable[..., object]) -> tuple[str, str, str]:
    lines, first = inspect.getsourcelines(function)
    for number, line in enumerate(lines, first):
        found = re.search(r"# here: (.*?) -> (.*?)(  # noqa.*)?$", line.rstrip())
        if found:
            return f"{__file__}:{number}", found[1], found[2]
    raise AssertionError(f"{function.__name__} marks no line")


@pytest.mark.parametrize(("function", "options"), MISTAKES, ids=[f.__name__ for f, _ in MISTAKES])
def test_mistake(function, options):
    where, message, remedy = place_and_words(function)
    with pytest.raises(KernelError) as caught:
        traced(function, options)
    error = caught.value
    place, _, line = str(error.where).rpartition(":")
    assert place == __file__
    if function.__name__ in WHOLE:
        assert int(line) <= int(where.rpartition(":")[2]) <= int(line) + 1  # at the decorator or at the def
    else:
        assert f"{place}:{line}" == where
    assert message in error.message
    assert error.remedy is not None
    assert remedy in error.remedy
    assert "fix: " in str(error)


WHOLE = {function.__name__ for function, _ in MISTAKES if "# here" in inspect.getsource(function).split(":\n")[0]}


def test_there_are_many():
    assert len(MISTAKES) >= 50


def test_calling_a_kernel():
    kernel = Kernel(nothing_done)
    with pytest.raises(KernelError, match="was called like a function") as caught:
        kernel(1, 2)
    assert "P.apply(nothing_done, u, new)" in str(caught.value.remedy)


@pytest.mark.parametrize("use", [lambda: random(), lambda: mg.index(0), lambda: mg.sum(1.0), lambda: cells.local(1.0)])
def test_outside_a_kernel(use):
    with pytest.raises(KernelError, match="outside a kernel") as caught:
        use()
    assert "@mg.kernel" in str(caught.value.remedy)
    assert str(caught.value.where).startswith(__file__)


def test_constants_alone_need_no_kernel():
    assert exp(1.0).dtype == "f8"
