"""Typer interface of the commands ``minga medium ...``, which :mod:`minga.models.waves.cli.medium` implements."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Make synthetic media for waves, and inspect files: `minga medium salt salt.zarr --shape 100,200,200`.",
)

Out = typer.Argument(
    metavar="OUT", help="NAME.zarr, or NAME.npy or NAME.rsf for one file per quantity, such as NAME-vp.npy."
)
Shape = typer.Option(
    "--shape", metavar="NZ,NY,NX", help="Numbers of cells along depth, y and x, or NZ,NX along depth and x."
)
Spacing = typer.Option(
    "--spacing", metavar="M", help="Spacing in metres: one number, or one for each axis such as 5,12.5,12.5."
)
Seed = typer.Option("--seed", help="Seed of the random medium.")
Anisotropy = typer.Option("--anisotropy", help="Factor of epsilon and delta; 0 makes the medium isotropic.")
Density = typer.Option("--density", help="Add a density that follows from the velocity, if the medium is isotropic.")
Picture = typer.Option("--picture", metavar="FILE", help="Draw slices through the middle into a .png or .svg file.")

Force = typer.Option("--force", help="Replace an existing picture.")


@app.command()
def layered(
    out: Annotated[Path, Out],
    shape: Annotated[str, Shape] = "100,100,100",
    spacing: Annotated[str, Spacing] = "12.5",
    depths: Annotated[
        str,
        typer.Option("--depths", metavar="M,M,...", help="Depths of the tops of the layers; by default five layers."),
    ] = "",
    velocities: Annotated[
        str, typer.Option("--velocities", metavar="V,V,...", help="Velocities of the layers in m/s, one per depth.")
    ] = "",
    dip: Annotated[float, typer.Option("--dip", help="Dip angle of the layers, in degrees.")] = 0.0,
    azimuth: Annotated[
        float, typer.Option("--azimuth", help="Direction in which the layers rise, in degrees from x towards y.")
    ] = 0.0,
    anisotropy: Annotated[float, Anisotropy] = 1.0,
    density: Annotated[bool, Density] = False,
    picture: Annotated[Path | None, Picture] = None,
    force: Annotated[bool, Force] = False,
) -> None:
    """Make a medium of flat or dipping layers."""
    from minga.models.waves.cli import medium as command

    layers = command.layers_of(depths, velocities)
    _print(command.make("layered", out, shape, spacing, picture, force, layers=layers, dip=dip, azimuth=azimuth,
                        anisotropy=anisotropy, density=density))  # fmt: skip


@app.command()
def salt(
    out: Annotated[Path, Out],
    shape: Annotated[str, Shape] = "100,100,100",
    spacing: Annotated[str, Spacing] = "12.5",
    seed: Annotated[int, Seed] = 1,
    anisotropy: Annotated[float, Anisotropy] = 1.0,
    density: Annotated[bool, Density] = False,
    picture: Annotated[Path | None, Picture] = None,
    force: Annotated[bool, Force] = False,
) -> None:
    """Make a medium with a salt body: water, lifted sediments, and a smooth random body of high velocity."""
    from minga.models.waves.cli import medium as command

    _print(command.make("salt", out, shape, spacing, picture, force, seed=seed, anisotropy=anisotropy, density=density))


@app.command()
def thrust(
    out: Annotated[Path, Out],
    shape: Annotated[str, Shape] = "100,100,100",
    spacing: Annotated[str, Spacing] = "12.5",
    seed: Annotated[int, Seed] = 1,
    anisotropy: Annotated[float, Anisotropy] = 1.0,
    density: Annotated[bool, Density] = False,
    picture: Annotated[Path | None, Picture] = None,
    force: Annotated[bool, Force] = False,
) -> None:
    """Make a medium of folded layers thrust over each other along a fault."""
    from minga.models.waves.cli import medium as command

    _print(
        command.make("thrust", out, shape, spacing, picture, force, seed=seed, anisotropy=anisotropy, density=density)
    )


@app.command()
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Zarr, NetCDF, .npy, RSF or SEG-Y.")],
    variable: Annotated[str | None, typer.Option("--variable", help="Show only this quantity.")] = None,
    axes: Annotated[
        str | None, typer.Option("--axes", help="Order of the axes in the file, slowest first, such as zyx.")
    ] = None,
    picture: Annotated[Path | None, Picture] = None,
    force: Annotated[bool, Force] = False,
) -> None:
    """Describe the contents of a file: shape, spacing, units, and range of values."""
    from minga.models.waves.cli import medium as command

    _print(command.show(file, variable, axes, picture, force))


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
