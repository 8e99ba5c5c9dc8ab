"""Extensions from installed packages, found through entry points; those of minga itself are found in the same way."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from minga.errors import CaseError, suggest

__all__ = ["load", "names"]


def names(group: str) -> tuple[str, ...]:
    """Return the names that packages have added to a group, in alphabetical order."""
    return tuple(sorted(_found(group)))


def load(group: str, name: str, what: str, *, key: str | None = None, remedy: str = "") -> Any:
    """Import the object behind a name of a group.

    Parameters
    ----------
    group, name
        The entry-point group, such as ``minga.models``, and one of its names.
    what
        Noun for the objects of the group in messages, such as "model".
    key, remedy
        The key of a case that the name comes from, and text on other values that are allowed there.

    Raises
    ------
    CaseError
        If no package or several packages add the name, or if the package that does so cannot be imported.
    """
    points = _found(group)
    if name not in points:
        raise CaseError(
            f"there is no {what} {name!r}",
            key=key,
            suggestion=suggest(name, points),
            remedy=f"name one of {', '.join(sorted(points))}{remedy}" if points else "install a package that adds it",
        )
    if len(points[name]) > 1:
        places = " and ".join(point.value for point in points[name])
        raise CaseError(
            f"several installed packages have a {what} {name!r}: {places}",
            key=key,
            remedy="remove one of these packages from the environment",
        )
    (point,) = points[name]
    try:
        return point.load()
    except Exception as error:  # the module of another package may raise anything when it is imported
        package = point.dist.name if point.dist else point.module
        raise CaseError(
            f"the {what} {name!r} of package {package} cannot be imported: {type(error).__name__}: {error}",
            key=key,
            remedy=f"repair or remove {package}",
        ) from error


@cache
def _found(group: str) -> dict[str, tuple[EntryPoint, ...]]:
    """Return the entry points of a group by name; a package that is found twice on the path counts once."""
    found: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=group):
        found.setdefault(point.name, {}).setdefault(point.value, point)
    return {name: tuple(points.values()) for name, points in found.items()}
