"""What observables are: their units and descriptions, which a model's files, pictures and summaries tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["quantities"]

Quantity = tuple[str, str]
"""A unit ("1" for numbers) and a description."""


def quantities(names: Iterable[str], known: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """The entry in `known` of each name; one that is not there has that of the longest prefix, written `PREFIX*`.

    "{}" in the description of a prefix stands for the rest of the name. Names without an entry are left out.
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
