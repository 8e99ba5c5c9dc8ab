"""minga: structured-grid simulations on the computers you have, with the same bits on all of them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minga import extend as extend
    from minga import lab as lab
    from minga import models as models
    from minga import network as network
    from minga import plan as plan
    from minga import solve as solve
    from minga import studies as studies
    from minga.api import *  # noqa: F403

    __version__: str

_API = str(Path(__file__).with_name("api.py"))
_MODULES = ("extend", "lab", "models", "network", "plan", "solve", "studies")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `minga --help` and shell completion are quick."""
    if name == "__all__":
        globals()[name] = _names()
    elif name == "__version__":
        from importlib.metadata import version

        globals()[name] = version("minga")
    elif name in _MODULES:
        globals()[name] = import_module(f"minga.{name}")
    elif not name.startswith("__") and name in _names():
        from minga.lazy import bring

        globals()[name] = bring("minga", _API, name)
    if name in globals():
        return globals()[name]
    raise AttributeError(f"module 'minga' has no attribute {name!r}")


def _names() -> tuple[str, ...]:
    """Return the names of ``minga.api`` without importing the modules that define them."""
    from minga.lazy import listed

    return listed(_API)


def __dir__() -> list[str]:
    return sorted({*_names(), *_MODULES})
