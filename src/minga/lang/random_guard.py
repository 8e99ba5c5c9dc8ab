"""A guard against random numbers of Python and NumPy in traced functions: they would be the same for all cells."""

from __future__ import annotations

import contextlib
import inspect
import pickle
import random
from collections.abc import Callable, Iterator

import numpy as np

from minga.errors import KernelError

__all__ = ["forbid_foreign_random"]


@contextlib.contextmanager
def forbid_foreign_random(function: Callable[..., object], where: str) -> Iterator[None]:
    """Raise KernelError if `function`, which is called inside, draws from a random generator of Python or NumPy.

    Detected are the global generators (`random.random()`, `np.random.rand()`) and those that the function refers to
    by name.
    """
    generators = list(_generators(function))
    before = _states(generators)
    yield
    if _states(generators) != before:
        raise KernelError(
            "a random number of Python or NumPy is drawn while the function is traced: only once for all cells and "
            "steps",
            where=where,
            remedy="write mg.random() for another number in each cell and step, or draw it before the function is used",
        )


def _generators(function: Callable[..., object]) -> Iterator[object]:
    written = getattr(function, "function", function)  # the function that a rule is made of
    if inspect.isfunction(written):
        with contextlib.suppress(ValueError):  # a name that has no value yet
            known = inspect.getclosurevars(written)
            for value in (*known.nonlocals.values(), *known.globals.values()):
                if isinstance(value, random.Random | np.random.Generator | np.random.RandomState):
                    yield value


def _states(generators: list[object]) -> bytes:
    return pickle.dumps((random.getstate(), np.random.get_state(), generators))  # noqa: NPY002 (authors call it)
