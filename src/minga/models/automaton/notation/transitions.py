"""Transitions of a rule table, "1,a,b,c,d,2", as a decision diagram: variables bound, symmetries applied, first match.

A transition lists for each cell of the neighbourhood the states that match, and the next state of the cell. The first
transition that matches counts; a cell that matches none keeps its state.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from minga.lang.neighbourhood import Neighbourhood, Offset, hex, moore, von_neumann
from minga.models.automaton.notation.decision import Diagram, reduced
from minga.models.automaton.notation.text import wrong

__all__ = ["SHAPES", "Shape", "TableTransition", "diagram_of"]

MOST_CASES: Final = 1 << 15
MOST_BRANCHES: Final = 1 << 19
_TOO_MUCH: Final = "write it as a Python rule (file.py:name), or with fewer variables and states"

States = frozenset[int]
Variables = Mapping[str, tuple[int, ...]]
"""States that each variable stands for, in the order in which they are listed."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Neighbourhood as rule tables name it.

    Attributes
    ----------
    neighbourhood
        The neighbourhood.
    around
        Its cells after the cell itself, in the order of a transition.
    symmetries
        For each symmetry the generators that permute these cells (cell i goes to place g[i]).
    """

    neighbourhood: Neighbourhood
    around: tuple[Offset, ...]
    symmetries: Mapping[str, tuple[tuple[int, ...], ...]]


def _turn(count: int, steps: int) -> tuple[int, ...]:
    """Return the permutation that moves every cell of a ring on by `steps` places."""
    return tuple((place + steps) % count for place in range(count))


def _mirror(count: int, total: int = 0) -> tuple[int, ...]:
    """Return the permutation that mirrors a ring: place i goes to total - i."""
    return tuple((total - place) % count for place in range(count))


_N, _NE, _E, _SE, _S, _SW, _W, _NW = (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1)

SHAPES: Final = {
    "vonNeumann": Shape(von_neumann(1), (_N, _E, _S, _W), {
        "none": (), "rotate4": (_turn(4, 1),), "rotate4reflect": (_turn(4, 1), _mirror(4)),
        "reflect_horizontal": (_mirror(4),),
    }),
    "Moore": Shape(moore(1), (_N, _NE, _E, _SE, _S, _SW, _W, _NW), {
        "none": (), "rotate4": (_turn(8, 2),), "rotate8": (_turn(8, 1),),
        "rotate4reflect": (_turn(8, 2), _mirror(8)), "rotate8reflect": (_turn(8, 1), _mirror(8)),
        "reflect_horizontal": (_mirror(8),),
    }),
    "hexagonal": Shape(hex(), (_N, _E, _SE, _S, _W, _NW), {
        "none": (), "rotate2": (_turn(6, 3),), "rotate3": (_turn(6, 2),), "rotate6": (_turn(6, 1),),
        "rotate6reflect": (_turn(6, 1), _mirror(6)),
    }),
    "oneDimensional": Shape(moore(1), ((-1,), (1,)), {"none": (), "reflect": ((1, 0),)}),
}  # fmt: skip
"""Neighbourhoods by name; each also has the symmetry "permute": only the number of neighbours in each state counts."""


@dataclass(frozen=True, slots=True)
class TableTransition:
    """One line of a table.

    Attributes
    ----------
    terms
        For the cell, its neighbours and the next state: a state or the name of a variable.
    variables
        States that these variables stand for at this line.
    line
        Number of the line.
    """

    terms: tuple[int | str, ...]
    variables: Variables
    line: int


Matching = tuple[States, ...]
"""States that match, for the cell and then for its neighbours."""


def diagram_of(states: int, shape: Shape, symmetry: str, transitions: Sequence[TableTransition]) -> Diagram:
    """Return the function that a table stands for; raise CaseError if it has too many cases."""
    cases: dict[tuple[Matching, int], None] = {}
    for transition in transitions:
        for inputs, output in _bound(transition):
            for turned in _symmetric(inputs, shape, symmetry):
                cases.setdefault((turned, output))
            if len(cases) > MOST_CASES:
                raise wrong(f"the table has more than {MOST_CASES} cases up to line {transition.line}", _TOO_MUCH)
    ndim = len(shape.around[0])
    asked = (*shape.around, (0,) * ndim)
    matching = [(*inputs[1:], inputs[0]) for inputs, _ in cases]
    return reduced(_diagram(states, asked, matching, [output for _, output in cases]))


def _bound(transition: TableTransition) -> Iterator[tuple[Matching, int]]:
    """Yield the transition for each value of the variables that occur in it more than once; others match any value.

    Under a symmetry a cell may match several of them, and the first one counts. As in Golly, values come in the order
    of their lists, and the variable whose name is first in the alphabet changes fastest.
    """
    *inputs, output = transition.terms
    variables = transition.variables
    count = Counter(term for term in transition.terms if isinstance(term, str))
    repeated = sorted((name for name, times in count.items() if times > 1), reverse=True)
    for values in itertools.product(*(variables[name] for name in repeated)):
        value = dict(zip(repeated, values))
        known = [value.get(term, term) if isinstance(term, str) else term for term in inputs]
        matching = tuple(States(variables[term] if isinstance(term, str) else [term]) for term in known)
        yield matching, value[output] if isinstance(output, str) else output


def _symmetric(inputs: Matching, shape: Shape, symmetry: str) -> Iterator[Matching]:
    """Yield the inputs under all members of a symmetry, each once."""
    cell, around = inputs[0], inputs[1:]
    if symmetry == "permute":
        yield from ((cell, *order) for order in _orders(Counter(around), len(around)))
        return
    found = {around: None}
    new = [around]
    while new:
        turned = []
        for generator in shape.symmetries[symmetry]:
            for old in new:
                image = tuple(old[generator.index(place)] for place in range(len(old)))
                if image not in found:
                    found[image] = None
                    turned.append(image)
        new = turned
    yield from ((cell, *image) for image in found)


def _orders(left: Counter[States], places: int) -> Iterator[Matching]:
    """Yield all different orders of these sets."""
    if not places:
        yield ()
        return
    for chosen in sorted(left, key=sorted):
        rest = left - Counter([chosen])
        yield from ((chosen, *others) for others in _orders(rest, places - 1))


def _diagram(states: int, asked: tuple[Offset, ...], cases: Sequence[Matching], outputs: Sequence[int]) -> Diagram:
    """Return a diagram whose nodes are the sets of cases that still match, each represented by the bits of a number."""
    levels = []
    alive = {(1 << len(cases)) - 1: 0}
    for place in range(len(asked)):
        if len(alive) * states > MOST_BRANCHES:
            raise wrong(f"the table distinguishes more than {MOST_BRANCHES} situations", _TOO_MUCH)
        last = place == len(asked) - 1
        masks = _masks([case[place] for case in cases], states)
        found: dict[int, int] = {}
        level = np.empty((len(alive), states), np.int32)
        for matching, node in alive.items():
            for state, mask in enumerate(masks):
                left = matching & mask
                if last:
                    level[node, state] = outputs[(left & -left).bit_length() - 1] if left else state
                else:
                    level[node, state] = found.setdefault(left, len(found))
        levels.append(level)
        alive = found
    return Diagram(states, asked, tuple(levels))


def _masks(cases: Sequence[States], states: int) -> list[int]:
    """Return for each state the set of cases that it matches, as the bits of a number, the first case lowest."""
    matches = np.zeros((states, len(cases)), np.bool_)
    for number, case in enumerate(cases):
        matches[list(case), number] = True
    return [int.from_bytes(row.tobytes(), "little") for row in np.packbits(matches, axis=1, bitorder="little")]
