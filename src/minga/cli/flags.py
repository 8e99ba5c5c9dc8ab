"""Command-line options that stand for settings of a run, with the help texts of the settings' declarations.

The declarations are imported only when the help is shown, so that shell completion stays fast.
"""

from __future__ import annotations

from typing import Any, Final

import typer
from typer.core import TyperCommand

__all__ = ["FLAGS", "SettingsCommand", "help_text", "setting"]

FLAGS: Final[dict[str, tuple[str, ...]]] = {
    "run.ranks": ("-n", "--ranks"),
    "run.threads": ("--threads",),
    "run.mapping": ("--mapping",),
    "run.topology": ("--topology",),
    "run.machine": ("--machine",),
    "run.device": ("--device",),
    "output.trace": ("--trace",),
}
"""Options of `minga run` that stand for settings; `--set` changes any other setting."""
_MARK: Final = "@setting "


def setting(key: str, **more: Any) -> Any:
    """Return the option for a setting of a run; its command must be a `SettingsCommand`."""
    return typer.Option(*FLAGS[key], help=_MARK + key, **more)


class SettingsCommand(TyperCommand):
    """A command with options that stand for settings of a run."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with the descriptions of the settings."""
        for parameter in self.params:
            if getattr(parameter, "help", None):
                parameter.help = help_text(parameter)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def help_text(parameter: Any) -> str:
    """Return the help of an argument or option; if it stands for a setting, the description of the setting."""
    text = getattr(parameter, "help", None) or ""
    return _described(text.removeprefix(_MARK)) if text.startswith(_MARK) else text


def _described(key: str) -> str:
    """Return the description of a setting as a sentence."""
    from minga.options import RunOptions
    from minga.schema import tables_of

    table, name = key.split(".")
    text = str(tables_of(RunOptions)[table].model_fields[name].description)
    return f"{text[0].upper()}{text[1:]}."
