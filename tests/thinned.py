"""Parameters of which ``make test`` takes some and ``make verify`` the others.

@pytest.mark.parametrize("ranks", thinned([1, 2, 3, 4], 3))

@pytest.mark.few(2)
@pytest.mark.parametrize("rule", RULES)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def thinned(values: Iterable[Any], *quick: Any) -> list[Any]:
    """The values, all but those named after them marked slow. For several parameters at once a value is a tuple."""
    every = list(values)
    assert all(value in every for value in quick), f"{quick} are not all among {every}"
    return [_param(value) if value in quick else _param(value, pytest.mark.slow) for value in every]


def _param(value: Any, *marks: pytest.MarkDecorator) -> Any:
    return pytest.param(*value, marks=marks) if isinstance(value, tuple) else pytest.param(value, marks=marks)


def leave_few(items: Sequence[pytest.Item]) -> None:
    """Mark tests slow, all but as many of each function as its mark ``few`` says: evenly spread, in their order."""
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("few") and not item.get_closest_marker("slow"):
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for tests in functions.values():
        mark = tests[0].get_closest_marker("few")
        assert mark is not None
        number = min(mark.args[0], len(tests))
        quick = {index * len(tests) // number for index in range(number)}
        for index, item in enumerate(tests):
            if index not in quick:
                item.add_marker(pytest.mark.slow)
