"""Updates: the cells of an automaton that change in a step, and their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from minga.lang.expr import author_error

__all__ = [
    "FORMS",
    "SYNCHRONOUS",
    "Asynchronous",
    "Coloured",
    "SecondOrder",
    "Synchronous",
    "Update",
    "as_update",
]

FORMS: Final = 'write "synchronous", {asynchronous = 0.5}, "coloured", {coloured = "random"}, or "second-order"'


@dataclass(frozen=True, slots=True)
class Synchronous:
    """An update of all cells at once, each from the values before the step."""

    def __str__(self) -> str:
        return "synchronous"


@dataclass(frozen=True, slots=True)
class Asynchronous:
    """An update of each cell with a given probability, independently of the others; other cells keep their values.

    Updated cells see the values before the step. The draw that decides depends only on seed, step and cell; the rule's
    own random numbers are the same as in a synchronous step.

    Parameters
    ----------
    probability
        Probability of an update, above 0 and at most 1.
    """

    probability: float

    def __post_init__(self) -> None:
        if isinstance(self.probability, bool) or not isinstance(self.probability, int | float):
            raise author_error(f"Asynchronous({self.probability!r})", "give a probability: mg.Asynchronous(0.5)")
        if not 0 < self.probability <= 1:
            raise author_error(
                f"Asynchronous({self.probability!r}): no cell would ever be updated, or cells more than once per step",
                "give the share of cells that a step updates: above 0 and at most 1",
            )

    def __str__(self) -> str:
        return f"asynchronous({self.probability:g})"


@dataclass(frozen=True, slots=True)
class Coloured:
    """An update of every cell once per step, colour by colour; cells see the new values of earlier colours.

    No two cells of a colour are neighbours, so the order within a colour does not matter. If all neighbours are an odd
    number of single steps away (mg.von_neumann(1)), there are two colours, the even and the odd cells of a
    checkerboard. Otherwise cells have the same colour if they agree in `index % (r + 1)` along every axis, where r is
    the reach of the neighbourhood along that axis.

    Parameters
    ----------
    order
        "fixed" for colours in row-major order of their first cells, or "random" for another permutation in each step,
        drawn from the seed.
    """

    order: Literal["fixed", "random"] = "fixed"

    def __post_init__(self) -> None:
        if self.order not in ("fixed", "random"):
            raise author_error(f"Coloured({self.order!r})", 'the order of colours is "fixed" or "random"')

    def __str__(self) -> str:
        return "coloured" if self.order == "fixed" else "coloured(random)"


@dataclass(frozen=True, slots=True)
class SecondOrder:
    """An update in which the next state is the rule's result minus the previous state, modulo the number of states.

    Such a step is reversible: exchange the last two states and continue (E. Fredkin's construction; T. Toffoli and
    N. Margolus, Cellular Automata Machines, MIT Press 1987, section 14.2). With two states, the difference is the
    exclusive or.
    """

    def __str__(self) -> str:
        return "second-order"


Update = Synchronous | Asynchronous | Coloured | SecondOrder

SYNCHRONOUS: Final = Synchronous()

_WORDS: Final[Mapping[str, Update]] = {
    "synchronous": SYNCHRONOUS, "coloured": Coloured(), "second-order": SecondOrder(),
}  # fmt: skip


def as_update(value: object) -> Update:
    """Return an update that is given as such, or as it is written in a case; raise KernelError for anything else."""
    if isinstance(value, Synchronous | Asynchronous | Coloured | SecondOrder):
        return value
    if isinstance(value, str) and value in _WORDS:
        return _WORDS[value]
    if isinstance(value, Mapping) and len(value) == 1:
        word, argument = next(iter(value.items()))
        made: dict[Any, Any] = {"asynchronous": Asynchronous, "coloured": Coloured}
        if word in made:
            update: Update = made[word](argument)
            return update
    raise author_error(f"unknown update {value!r}", FORMS)
