"""Example cases: those that ship with minga, and those of models that packages add."""

from __future__ import annotations

from pathlib import Path

from minga.case.files import SHIPPED
from minga.case.spec import GROUP, model_spec
from minga.errors import CaseError
from minga.plugins import names

__all__ = ["example", "examples", "first_example"]


def examples() -> dict[str, Path]:
    """Return the file of each example, TOML or Python, by name."""
    return {**_of_packages(), **_shipped()}


def example(name: str) -> Path | None:
    """Return the file of an example, or None if there is none of this name."""
    name = name.replace("_", "-")
    return _shipped().get(name) or _of_packages().get(name)


def first_example(model: str) -> Path | None:
    """Return the first example of an installed model, or None if it has none; raise CaseError for an unknown model."""
    of_model = model_spec(model).examples
    if not of_model:
        return None
    return of_model[0] if isinstance(of_model[0], Path) else example(of_model[0])


def _shipped() -> dict[str, Path]:
    return {path.stem: path for path in sorted(SHIPPED.iterdir()) if path.suffix in (".toml", ".py")}


def _of_packages() -> dict[str, Path]:
    """Return the examples in packages that add models, leaving out packages that cannot be imported."""
    found: dict[str, Path] = {}
    for name in names(GROUP):
        try:
            spec = model_spec(name)
        except CaseError:
            continue
        found |= {path.stem.replace("_", "-"): path for path in spec.examples if isinstance(path, Path)}
    return found
