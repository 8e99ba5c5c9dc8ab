"""The commands ``minga medium ...`` as typer shows them; what they do is in :mod:`minga.cli.medium`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Media for waves: make synthetic ones, look at files: `minga medium salt salt.zarr --shape 100,200,200`.",
)

Out = typer.Argument(metavar="OUT", help="NAME.zarr, or NAME.npy or NAME.rsf for a file a quantity: NAME-vp.npy.")
Shape = typer.Option("--shape", metavar="NZ,NY,NX", help="Cells down, along y and along x.")
Spacing = typer.Option("--spacing", metavar="M", help="Metres between cells: one number, or three: 5,12.5,12.5.")
Seed = typer.Option("--seed", help="Which of the random media.")
Anisotropy = typer.Option("--anisotropy", help="Factor of epsilon and delta; 0 makes it isotropic.")
Picture = typer.Option("--picture", metavar="FILE", help="Draw slices through the middle into a .png or .svg file.")

Force = typer.Option("--force", help="Replace a picture that is there.")


@app.command()
def layered(
    out: Annotated[Path, Out],
    shape: Annotated[str, Shape] = "100,100,100",
    spacing: Annotated[str, Spacing] = "12.5",
    depths: Annotated[
        str, typer.Option("--depths", metavar="M,M,...", help="Depths of the layers' tops; five layers if left out.")
    ] = "",
    velocities: Annotated[
        str, typer.Option("--velocities", metavar="V,V,...", help="Their velocities in m/s, one for each depth.")
    ] = "",
    dip: Annotated[float, typer.Option("--dip", help="How far the layers are tilted, degrees.")] = 0.0,
    azimuth: Annotated[float, typer.Option("--azimuth", help="Towards where they rise, degrees from x to y.")] = 0.0,
    anisotropy: Annotated[float, Anisotropy] = 1.0,
    picture: Annotated[Path | None, Picture] = None,
    force: Annotated[bool, Force] = False,
) -> None:
    """Make a medium of flat or dipping layers."""
    from minga.cli import medium as command

    layers = command.layers_of(depths, velocities)
    _print(command.make("layered", out, shape, spacing, picture, force, layers=layers, dip=dip, azimuth=azimuth,
                        anisotropy=anisotropy))  # fmt: skip


@app.command()
def salt(
    out: Annotated[Path, Out],
    shape: Annotated[str, Shape] = "100,100,100",
    spacing: Annotated[str, Spacing] = "12.5",
    seed: Annotated[int, Seed] = 1,
    anisotropy: Annotated[float, Anisotropy] = 1.0,
    picture: Annotated[Path | None, Picture] = None,
    force: Annotated[bool, Force] = False,
) -> None:
    """Make a medium with a body of salt: water, lifted sediments, and a smooth random body that is fast."""
    from minga.cli import medium as command

    _print(command.make("salt", out, shape, spacing, picture, force, seed=seed, anisotropy=anisotropy))


@app.command()
def thrust(
    out: Annotated[Path, Out],
    shape: Annotated[str, Shape] = "100,100,100",
    spacing: Annotated[str, Spacing] = "12.5",
    seed: Annotated[int, Seed] = 1,
    anisotropy: Annotated[float, Anisotropy] = 1.0,
    picture: Annotated[Path | None, Picture] = None,
    force: Annotated[bool, Force] = False,
) -> None:
    """Make a medium of folded layers that were pushed over each other along a fault."""
    from minga.cli import medium as command

    _print(command.make("thrust", out, shape, spacing, picture, force, seed=seed, anisotropy=anisotropy))


@app.command()
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Zarr, NetCDF, .npy, RSF or SEG-Y.")],
    variable: Annotated[str | None, typer.Option("--variable", help="Only this quantity of several.")] = None,
    axes: Annotated[str | None, typer.Option("--axes", help="Order of the file's axes, slowest first: zyx.")] = None,
    picture: Annotated[Path | None, Picture] = None,
    force: Annotated[bool, Force] = False,
) -> None:
    """Say what is in a file: shape, spacing, units, and the range of its values."""
    from minga.cli import medium as command

    _print(command.show(file, variable, axes, picture, force))


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
