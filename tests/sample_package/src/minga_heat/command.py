from pathlib import Path
from typing import Annotated

import typer


def hottest(run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's directory.")]) -> None:
    """Print the highest temperature that a run has seen."""
    rows = (run / "hottest.csv").read_text().split()
    print(max(float(row.split(",")[1]) for row in rows))
