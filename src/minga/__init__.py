"""minga: structured-grid simulations on the computers you have, with the same bits on all of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minga.api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Import what :mod:`minga.api` offers when a name is first used: `minga --help` and Tab in a shell are quick."""
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module 'minga' has no attribute {name!r}")
    api = import_module("minga.api")
    if name == "__all__" or name in api.__all__:
        globals()[name] = getattr(api, name)
    if name in globals():  # packages of minga are, as soon as something imports them
        return globals()[name]
    raise AttributeError(f"module 'minga' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module("minga.api").__all__})
