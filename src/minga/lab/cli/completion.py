"""Shell completion of labs."""

from __future__ import annotations

from minga.cli.completion import files

__all__ = ["labs"]


def labs(incomplete: str) -> list[str]:
    """Return the labs that ship with minga, and TOML files."""
    from minga.case.files import SHIPPED

    known = sorted(path.stem for path in (SHIPPED / "labs").glob("*.toml"))
    here = (name for name in files(incomplete) if not name.endswith(".py"))
    return [*(name for name in known if name.startswith(incomplete)), *here]
