"""Keys of errors by the tables of the case that is read, where functions name those of Fletcher's waves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from minga.errors import CaseError

__all__ = ["keys_of"]


@contextmanager
def keys_of(table: str, instead_of: str = "fletcher") -> Iterator[None]:
    """Name the keys of errors by another table of a case.

    Parameters
    ----------
    table
        The table, "elastic" or "fletcher.sources[1]".
    instead_of
        The table by which functions name their keys.
    """
    try:
        yield
    except CaseError as error:
        if error.key is not None and f"{error.key}.".startswith(f"{instead_of}."):
            error.key = table + error.key.removeprefix(instead_of)
        raise
