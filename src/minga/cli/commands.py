"""Commands that packages add to ``minga`` through the entry-point group ``minga.commands``.

Commands of minga itself that do not belong to its core are added in the same way. An entry point is a function with
typer's annotations, or a ``typer.Typer`` with several commands. Its module is imported when the command or the list of
all commands is requested, so slow imports belong inside its functions.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from minga.errors import CaseError
from minga.plugins import load, names

__all__ = ["GROUP", "Commands"]

GROUP = "minga.commands"
"""Entry-point group of commands."""


class Commands(TyperGroup):
    """The core commands in the order of their definition, followed by those that packages add."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [*self.commands, *(name for name in names(GROUP) if name not in self.commands)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None if there is none of this name.

        A command that cannot be imported raises its error when it is called.
        """
        if cmd_name in self.commands or cmd_name not in names(GROUP):
            return super().get_command(ctx, cmd_name)
        try:
            found = load(GROUP, cmd_name, "command")
        except CaseError as error:
            found = _failing(error)
        return as_click(cmd_name, found)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments begin with; suggest one of all names for an unknown command."""
        if args and args[0] not in self.list_commands(ctx):
            known: dict[str, Any] = dict.fromkeys(names(GROUP))  # only for the suggestion
            self.commands = {**known, **self.commands}
        return super().resolve_command(ctx, args)


def as_click(name: str, found: Any) -> Any:
    """Convert the object of an entry point into a click command of this name."""
    if isinstance(found, typer.Typer):
        group = typer.main.get_group(found)
        group.name = name
        return group
    app = typer.Typer(add_completion=False)
    app.command(name=name)(found)
    return typer.main.get_command(app)


def _failing(error: CaseError) -> Any:
    def command() -> None:
        raise error

    command.__doc__ = f"Not available: {error.message}"
    return command
