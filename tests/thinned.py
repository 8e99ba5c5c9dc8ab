"""Parameters of which ``make test`` takes some and ``make verify`` the others.

@pytest.mark.parametrize("ranks", thinned([1, 2, 3, 4], 3))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def thinned(values: Iterable[Any], *quick: Any) -> list[Any]:
    """The values, all but those named after them marked slow. For several parameters at once a value is a tuple."""
    every = list(values)
    assert all(value in every for value in quick), f"{quick} are not all among {every}"
    return [_param(value) if value in quick else _param(value, pytest.mark.slow) for value in every]


def _param(value: Any, *marks: pytest.MarkDecorator) -> Any:
    return pytest.param(*value, marks=marks) if isinstance(value, tuple) else pytest.param(value, marks=marks)
