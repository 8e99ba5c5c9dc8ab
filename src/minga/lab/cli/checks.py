"""Checks of ``minga doctor`` that concern labs, entry points of the group ``minga.checks``."""

from __future__ import annotations

from dataclasses import asdict

from minga.cli.doctor import Finding
from minga.errors import LaunchError
from minga.lab.cluster import lab_rights
from minga.launch.implementations import NAMES, installed

__all__ = ["implementations", "labs"]


def labs() -> Finding:
    """Check whether ``minga lab`` works here; its requirements concern no other command."""
    try:
        rights = lab_rights()
    except LaunchError as error:
        return Finding("labs", "note", f"not possible: {error.message}", {"possible": False})
    groups = f"quotas by control groups of version {rights.version}" if rights.version else "no quotas (--no-quota)"
    text = f"possible {'without' if rights.rootless else 'as'} root, {groups}"
    return Finding("labs", "ok", text, {"possible": True, **asdict(rights)})


def implementations() -> Finding:
    """List the MPI libraries that ``minga lab run --mpi`` can use; more than one is needed only for testing."""
    found = installed()
    text = ", ".join(f"{one.name} ({one.library})" for one in found) or "none"
    if missing := [name for name in NAMES if name not in {one.name for one in found}]:
        text += f"; not installed: {', '.join(missing)} (`make mpi-environments` in a checkout)"
    data = {one.name: {"launcher": str(one.launcher), "library": str(one.library)} for one in found}
    return Finding("MPIs for labs", "ok", text, data)
