"""Pictures and report of a finished run; without Matplotlib a line that says so is printed in their place."""

from __future__ import annotations

import sys

from minga.extras import available, missing
from minga.options import RunOptions
from minga.output.directory import RunDirectory

__all__ = ["draw_pictures", "make_report"]


def draw_pictures(directory: RunDirectory, options: RunOptions) -> None:
    """Draw as many pictures of each field as `output.pictures` asks for, and the drawings described by the model."""
    if not available("matplotlib"):
        if options.output.pictures or options.output.report:
            sys.stderr.write(f"minga: {missing('matplotlib')}\n")
        return
    from minga.view.drawings import draw_all
    from minga.view.pictures import draw_run

    draw_run(directory.fields, directory.pictures, options.output.pictures)
    if options.output.pictures:
        draw_all(directory)


def make_report(directory: RunDirectory, options: RunOptions) -> None:
    """Write the report if `output.report` asks for it."""
    if options.output.report and available("matplotlib"):
        from minga.view.report import write_report

        write_report(directory)
