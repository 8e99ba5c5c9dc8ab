"""The call of :func:`minga.run` as text, which the attribute ``command`` of its dataset holds."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from minga.options import FIXED, RunOptions, marked
from minga.running.goal import ending_time

__all__ = ["call_of", "said_call"]


def call_of(options: RunOptions, others: Mapping[str, object]) -> str:
    """Return a call that repeats a run, with the script that made it as a comment.

    Settings that change neither a bit of the result nor what is kept of it are left out.

    Parameters
    ----------
    options
        The completed options of the run.
    others
        Further arguments by name, such as initial values and a callback: they appear as dots if they are given.
    """
    end = ending_time(options)
    given: dict[str, object] = {"steps": options.run.steps} if end is None else {"until": end}
    for table in ("output", "stop"):
        names = {name for of, name in marked(FIXED) if of == table}
        changed = getattr(options, table).model_dump(include=names, exclude_defaults=True)
        given |= changed if table == "output" else {table: changed} if changed else {}
    return said_call("mg.run", given, [name for name, value in others.items() if value is not None])


def said_call(function: str, given: Mapping[str, object], others: Sequence[str] = ()) -> str:
    """Return a call of a function of a model as text.

    Parameters
    ----------
    function
        Name of the function.
    given
        Arguments by name.
    others
        Names of arguments that appear as dots.
    """
    words = [*(f"{name}={value!r}" for name, value in given.items()), *(f"{name}=..." for name in others)]
    script = _script()
    return f"{function}({', '.join(['model', *words])})" + (f"  # {script}" if script else "")


def _script() -> str:
    """Return the command that started this script; empty in a notebook or an interactive session."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    if main is None or "ipykernel" in sys.modules:
        return ""
    return shlex.join(["python", Path(main).name, *sys.argv[1:]])
