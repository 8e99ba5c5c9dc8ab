"""Units and descriptions of observables, which appear in the files, pictures and summaries of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["quantities"]

Quantity = tuple[str, str]
"""A unit, "1" if dimensionless, and a description."""


def quantities(names: Iterable[str], known: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Return the unit and the description of each name.

    Parameters
    ----------
    names
        Names of observables.
    known
        Entries by name or by prefix, written ``PREFIX*``. A name without its own entry gets that of its longest prefix;
        "{}" in the description stands for the rest of the name.

    Returns
    -------
    dict
        Entries by name; names without an entry are left out.
    """
    prefixes = sorted((key[:-1] for key in known if key.endswith("*")), key=len, reverse=True)
    found: dict[str, Quantity] = {}
    for name in names:
        prefix = next((prefix for prefix in prefixes if name.startswith(prefix)), None)
        if name in known:
            found[name] = known[name]
        elif prefix is not None:
            unit, words = known[f"{prefix}*"]
            found[name] = unit, words.replace("{}", name.removeprefix(prefix))
    return found
