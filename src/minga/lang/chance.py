"""A guard against random numbers of Python and NumPy in a traced function: drawn once, they were one for all cells."""

from __future__ import annotations

import contextlib
import inspect
import pickle
import random
from collections.abc import Callable, Iterator

import numpy as np

from minga.errors import KernelError

__all__ = ["only_our_chance"]


@contextlib.contextmanager
def only_our_chance(function: Callable[..., object], where: str) -> Iterator[None]:
    """KernelError where `function`, which is called inside, has drawn from a generator of Python or NumPy.

    Those are seen that are global (`random.random()`, `np.random.rand()`), and those that it knows by a name.
    """
    generators = list(_generators(function))
    before = _states(generators)
    yield
    if _states(generators) != before:
        raise KernelError(
            "a random number of Python or NumPy is drawn while the function is traced: once, for all cells and steps",
            where=where,
            remedy="write mg.random(), another number for each cell and step; or draw it before, outside the function",
        )


def _generators(function: Callable[..., object]) -> Iterator[object]:
    written = getattr(function, "function", function)  # what a rule is made of
    if inspect.isfunction(written):
        with contextlib.suppress(ValueError):  # a name that has no value yet
            known = inspect.getclosurevars(written)
            for value in (*known.nonlocals.values(), *known.globals.values()):
                if isinstance(value, random.Random | np.random.Generator | np.random.RandomState):
                    yield value


def _states(generators: list[object]) -> bytes:
    return pickle.dumps((random.getstate(), np.random.get_state(), generators))  # noqa: NPY002 (authors call it)
