"""Complex refractive indices n + ik of materials: tables over the wavelength, shipped or a user's own."""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from minga.compile import portable
from minga.errors import CaseError, suggest

__all__ = ["Index", "IndexSaid", "between", "index_of", "read_index", "shipped_index", "shipped_names"]

_LEAST: Final = 1e-3
_MOST: Final = 1e3
_Real = Annotated[float, Field(ge=_LEAST, le=_MOST, allow_inf_nan=False)]
_Imaginary = Annotated[float, Field(ge=0, le=_MOST, allow_inf_nan=False)]
IndexSaid = _Real | tuple[_Real, _Imaginary] | str
"""A refractive index as users write it: n, [n, k], or the name of a shipped table or of a file."""

_SHIPPED: Final = Path(__file__).parent / "indices"
_FORM: Final = "write rows of a wavelength in nm, n and k, such as 850,3.67,0.0036, with ascending wavelengths"


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """A refractive index; between its wavelengths, n and the logarithm of k are interpolated linearly.

    Parameters
    ----------
    name
        Name of the material or file.
    n, k
        Real and imaginary parts; light is attenuated as exp(-4 pi k x/wavelength). An empty k is unknown; coatings and
        other films without an absorption of their own are then transparent.
    wavelengths
        Wavelengths, nm, ascending; empty for an index that does not depend on the wavelength.
    source
        Where the numbers are from, as the comments at the beginning of a file say.
    """

    name: str
    n: tuple[float, ...]
    k: tuple[float, ...]
    wavelengths: tuple[float, ...] = ()
    source: str = ""

    def covers(self, wavelength: float) -> bool:
        """Return whether the index is known at a wavelength.

        Parameters
        ----------
        wavelength
            Wavelength, nm.

        Returns
        -------
        bool
            True if it is.
        """
        return not self.wavelengths or self.wavelengths[0] <= wavelength <= self.wavelengths[-1]

    def at(self, wavelength: float) -> tuple[float, float]:
        """Return n and k at a wavelength at which the index is known.

        Parameters
        ----------
        wavelength
            Wavelength, nm.

        Returns
        -------
        tuple of float
            n and k.
        """
        if not self.wavelengths:
            return self.n[0], self.k[0] if self.k else 0.0
        k = between(wavelength, self.wavelengths, self.k, logarithmic=True) if self.k else 0.0
        return between(wavelength, self.wavelengths, self.n), k

    def absorption(self, wavelength: float) -> float:
        """Return the absorption coefficient 4 pi k/wavelength at a wavelength at which the index is known.

        Parameters
        ----------
        wavelength
            Wavelength, nm.

        Returns
        -------
        float
            Absorption coefficient, 1/cm.
        """
        return 4.0 * math.pi * self.at(wavelength)[1] / (wavelength * 1e-7)


def between(x: float, places: Sequence[float], values: Sequence[float], *, logarithmic: bool = False) -> float:
    """Return a value interpolated linearly, or `logarithmic`: linearly in its logarithm, except next to a 0."""
    k = bisect.bisect_left(places, x)
    if places[k] == x:
        return values[k]
    share = (x - places[k - 1]) / (places[k] - places[k - 1])
    low, high = values[k - 1 : k + 1]
    if not logarithmic or low == 0.0 or high == 0.0:
        return low + share * (high - low)
    first, last = portable.log(low), portable.log(high)
    return float(portable.exp(first + share * (last - first)))


def index_of(said: float | tuple[float, float] | str, directory: Path, key: str) -> Index:
    """Return the index that a user wrote; files are looked up in a directory.

    Raises
    ------
    CaseError
        If there is no such table or file, or the file is invalid.
    """
    if isinstance(said, tuple):
        return Index(f"{said[0]:g} + {said[1]:g}i", (said[0],), (said[1],))
    if not isinstance(said, str):
        return Index(f"{said:g}", (said,), ())
    if said in shipped_names():
        return shipped_index(said)
    if not (directory / said).is_file():
        raise CaseError(
            f"there is no refractive index {said!r}",
            key=key,
            where=str(directory),
            suggestion=suggest(said, [*shipped_names(), *(path.name for path in directory.glob("*.csv"))]),
            remedy=f'write n, [n, k], one of {", ".join(shipped_names())}, or a file: index = "my.csv"',
        )
    return read_index(directory / said, key)


def read_index(path: Path, key: str) -> Index:
    """Return the index in a file of rows of a wavelength in nm, n and k; `#` begins a comment.

    Raises
    ------
    CaseError
        If the file cannot be read, or a row is invalid; the error names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CaseError(f"{path.name} cannot be read: {error}", key=key, where=str(path)) from None
    rows: list[tuple[float, float, float]] = []
    headed = False
    for number, line in enumerate(lines, 1):
        words = [word for word in re.split(r"[,;\s]+", line.partition("#")[0]) if word]
        if not words:
            continue
        if not rows and not headed and not any(_numeric([word]) for word in words):
            headed = True
            continue
        wrong = _wrong(words, rows)
        if wrong:
            raise CaseError(f"line {number} of {path.name}: {wrong}", key=key, where=str(path), remedy=_FORM)
        rows.append((float(words[0]), float(words[1]), float(words[2])))
    if not rows:
        raise CaseError(f"{path.name} has no rows of numbers", key=key, where=str(path), remedy=_FORM)
    wavelengths, n, k = zip(*rows)
    comments = [line[1:].strip() for line in takewhile(lambda line: line.startswith("#"), lines)]
    return Index(path.stem, n, k, wavelengths, " ".join(comments))


def _numeric(words: Sequence[str]) -> bool:
    try:
        return all(math.isfinite(float(word)) for word in words)
    except ValueError:
        return False


def _wrong(words: Sequence[str], rows: Sequence[tuple[float, float, float]]) -> str:
    """Return what is wrong with a row; an empty string if nothing is."""
    if len(words) != 3 or not _numeric(words):
        return f"expected three numbers, found {' '.join(words)!r}"
    wavelength, n, k = map(float, words)
    if wavelength <= 0:
        return f"a wavelength of {wavelength:g} nm"
    if rows and wavelength <= rows[-1][0]:
        return f"{wavelength:g} nm after {rows[-1][0]:g} nm; wavelengths must be in ascending order"
    if not _LEAST <= n <= _MOST:
        return f"n = {n:g}; expected a number from {_LEAST:g} to {_MOST:g}"
    return "" if 0 <= k <= _MOST else f"k = {k:g}; expected a number from 0 to {_MOST:g}"


@cache
def shipped_names() -> tuple[str, ...]:
    """Return the names of the indices shipped with minga."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob("*.csv")))


@cache
def shipped_index(name: str) -> Index:
    """Return an index shipped with minga."""
    return read_index(_SHIPPED / f"{name}.csv", "photodiode.light")
