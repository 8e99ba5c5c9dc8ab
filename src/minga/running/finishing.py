"""Finishers: pictures, the report and additions of other packages, once a run has a result.

A *finisher* is a function of the run's directory and its options, found by the entry points `minga.finishers`. None can
lose the result, which is on the disk before: an error of a finisher is told on standard error.
"""

from __future__ import annotations

import sys
from typing import Final

from minga.errors import MingaError
from minga.options import RunOptions
from minga.output.directory import RunDirectory
from minga.plugins import load, names

__all__ = ["FINISHERS", "finish"]

FINISHERS: Final = "minga.finishers"


def finish(directory: RunDirectory, options: RunOptions, comfort: str) -> None:
    """Call all finishers on rank 0; `comfort` says what is safe if one fails."""
    for name in names(FINISHERS):
        try:
            load(FINISHERS, name, "finisher")(directory, options)
        except Exception as error:  # whatever it is, it comes after the run
            said = str(error) if isinstance(error, MingaError) else f"{type(error).__name__}: {error}"
            sys.stderr.write(f"minga: the {name} could not be made, but {comfort} in {directory.path}\n  {said}\n")
