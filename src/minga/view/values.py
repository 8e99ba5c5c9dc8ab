"""Values of observables as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["outcome_texts", "quantity_text", "value_text"]

_FEW = 8
"""Most values of an observable that are shown one by one."""
_LONGEST = 100
"""Most characters of a text."""


def outcome_texts(result: Mapping[str, Any], whole: Callable[[int], str] = str) -> dict[str, str]:
    """Return the time of the model at the end of a run, if it has a clock, and its observables, with their units.

    Parameters
    ----------
    result
        The result of the run as data.
    whole
        Function that formats whole numbers.

    Returns
    -------
    dict
        A text for each name.
    """
    units = {"time": result.get("time_unit", "1"), **result.get("units", {})}
    time = {} if "time_unit" not in result else {"time": result["time"]}
    values = {**time, **result.get("observables", {})}
    plain = {name: "" if units.get(name, "1") == "1" else units[name] for name in values}
    return {name: quantity_text(value, plain[name], whole) for name, value in values.items()}


def quantity_text(value: object, unit: str, whole: Callable[[int], str] = str) -> str:
    """Return an observable with its unit: ``3.2 V``; ``no value`` without a unit if it is NaN.

    Parameters
    ----------
    value
        A number, a list of numbers, or anything else.
    unit
        The unit, "" if there is none.
    whole
        Function that formats whole numbers.

    Returns
    -------
    str
        The text.
    """
    value = _number(value)
    if isinstance(value, float) and math.isnan(value):
        return "no value"
    return f"{value_text(value, whole)} {unit}".rstrip()


def value_text(value: object, whole: Callable[[int], str] = str) -> str:
    """Return a value as text: numbers to six digits, of a long list the largest magnitude.

    Parameters
    ----------
    value
        A number, a list of numbers, or anything else.
    whole
        Function that formats whole numbers.

    Returns
    -------
    str
        The text.
    """
    value = [_number(one) for one in value] if isinstance(value, list) else _number(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return whole(value)
    if isinstance(value, list) and all(isinstance(one, float | int) for one in value):
        return _largest(value) if len(value) > _FEW else f"[{', '.join(value_text(one, whole) for one in value)}]"
    text = str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _number(value: object) -> object:
    """Return the number for which a word stands in data, as JSON has none that are not finite."""
    return float(value) if value in ("nan", "inf", "-inf") else value


def _largest(values: list[float]) -> str:
    """Return the number of values and their largest magnitude."""
    finite = [abs(one) for one in values if math.isfinite(one)]
    odd = "" if len(finite) == len(values) else f", {len(values) - len(finite)} not finite"
    return f"{len(values)} values, the largest magnitude {max(finite, default=math.nan):.6g}{odd}"
