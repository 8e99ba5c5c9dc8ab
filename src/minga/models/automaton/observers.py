"""Choice of the observables of an automaton: names, user functions, and avalanches.

A case may write for `automaton.observe` (the default depends on the type of the cells):

    ["population", "entropy"]       some of NAMES
    ["ising.py:energy"]             a function of a cell and its neighbours that returns reductions
    [{avalanches = 4}]              avalanches: cells in state 4 or above are active; {avalanches = true}: changing ones
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from minga.case.files import locate
from minga.case.python_file import run_file
from minga.errors import CaseError, suggest

__all__ = ["KEY", "NAMES", "Function", "Observers", "parse_observers"]

KEY: Final = "automaton.observe"
NAMES: Final = (
    "population", "histogram", "entropy", "sum", "mean", "min", "max", "residual", "changed", "bounding_box",
)  # fmt: skip
FORMS: Final = f'list some of {", ".join(NAMES)}, "file.py:function", {{avalanches = true}} or {{avalanches = STATE}}'

Function = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Observers:
    """Requested observables.

    Attributes
    ----------
    names
        Some of NAMES, in order; None for the default, which depends on the type of the cells.
    functions
        Functions by the name their result gets, unless they name several results themselves.
    avalanche
        None for no avalanches; True: cells that change are active; a state: cells in it or above are active.
    """

    names: tuple[str, ...] | None = None
    functions: Mapping[str, Function] = field(default_factory=lambda: MappingProxyType({}))
    avalanche: bool | int | None = None

    @property
    def only_names(self) -> bool:
        """True if everything follows from the states of the cells, without functions or watching every step."""
        return not self.functions and self.avalanche is None


def parse_observers(given: object, directory: Path = Path()) -> Observers:
    """Return the observables that `automaton.observe` asks for.

    In Python its entries may also be functions and mappings of names to functions; a single mapping is observed in
    addition to the default.

    Raises
    ------
    CaseError
        If an entry is invalid.
    """
    if given is None:
        return Observers()
    alone = isinstance(given, Mapping)
    entries = [given] if alone or callable(given) or isinstance(given, str) else given
    if not isinstance(entries, Sequence):
        raise CaseError(f"found {given!r}", key=KEY, remedy=FORMS)
    names: list[str] = []
    functions: dict[str, Function] = {}
    avalanche: bool | int | None = None
    for entry in entries:
        if isinstance(entry, str):
            name, function = _of_word(entry, directory)
            if function is None:
                names.append(name)
            else:
                functions[name] = function
        elif isinstance(entry, Mapping) and set(entry) == {"avalanches"}:
            avalanche = _activity(entry["avalanches"])
        elif isinstance(entry, Mapping) and all(map(callable, entry.values())):
            functions |= {str(name): function for name, function in entry.items()}
        elif callable(entry):
            functions[str(getattr(entry, "__name__", "observed"))] = entry
        else:
            raise CaseError(f"found {entry!r}", key=KEY, remedy=FORMS)
    return Observers(None if alone else tuple(dict.fromkeys(names)), MappingProxyType(functions), avalanche)


def _of_word(word: str, directory: Path) -> tuple[str, Function | None]:
    """Return a name without a function, or the function that "file.py:name" names."""
    path, colon, name = word.partition(":")
    if not path.endswith(".py"):
        if word not in NAMES:
            raise CaseError(f"unknown observable {word!r}", key=KEY, suggestion=suggest(word, NAMES), remedy=FORMS)
        return word, None
    found = run_file(locate(path, directory), KEY)
    function: Any = found.get(name)
    if not colon or not callable(function) or getattr(function, "__code__", None) is None:
        functions = [key for key, value in found.items() if getattr(value, "__code__", None)]
        raise CaseError(
            f"{path!r} has no function {name!r}",
            key=KEY,
            suggestion=suggest(name, functions),
            remedy="write def NAME(cell, near): return mg.sum(...)",
        )
    return name, function


def _activity(value: object) -> bool | int:
    if value is True or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 255):
        return value
    raise CaseError(
        f"avalanches = {value!r}",
        key=KEY,
        remedy="true: cells that change are active; a state, 1 .. 255: cells in it or above are",
    )
