"""Mesh requested by a case."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.photodiode.case_regions import edges_of, steps_of
from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.photodiode.settings_contacts import ContactSettings
from minga.models.photodiode.settings_layers import LayerSettings
from minga.models.photodiode.settings_mesh import GradedSettings, MeshSettings
from minga.models.photodiode.structure.mesh import Mesh, graded, placed, spaced, uniform
from minga.models.photodiode.structure.stack import Layer
from minga.plan.machine.resources import total_memory

__all__ = ["THINNEST", "across_of", "check_size", "mesh_of", "rows_of"]

THINNEST: Final = 1e-8
"""Smallest thickness of a layer, cm: atoms of all semiconductors are further apart."""
_SAME: Final = 1e-9
"""Relative difference up to which two boundaries are one."""
_NODE_BYTES: Final = 800
"""Bytes that each process needs for a node, whatever the number of ranks: about a hundred numbers."""


def check_size(settings: PhotodiodeSettings, layers: Sequence[Layer]) -> None:
    """Raise CaseError, before any array is made, for a mesh that does not fit into the memory of this machine."""
    mesh, across = settings.mesh, settings.mesh.across
    length = math.fsum(layer.thickness for layer in layers)
    if mesh.spacing is not None:
        along = float(sum(layer.rows or 1 for layer in layers))
    elif mesh.nodes is not None or mesh.positions is not None:
        along = float(mesh.nodes or len(mesh.positions or ()))
    else:
        along = length / _widest(mesh.graded or GradedSettings())
    wide = (settings.width or 0.0) / _widest(across) if across is not None else float(settings.columns or 1)
    memory = total_memory()
    needed = _NODE_BYTES * along * max(wide, 1.0)
    if memory is not None and needed > memory:
        raise CaseError(
            f"a mesh of about {along * max(wide, 1.0):.3g} nodes needs {needed / 2**30:.4g} GiB in each process, and "
            f"this machine has {memory / 2**30:.4g} GiB",
            key="photodiode.mesh",
            remedy="choose a larger spacing, or fewer nodes and columns",
        )


def _widest(said: GradedSettings) -> float:
    """Return the largest distance of nodes."""
    return max(said.cap, said.first)


def rows_of(entry: LayerSettings, name: str, key: str, mesh: MeshSettings) -> tuple[int | None, float]:
    """Return the number of mesh rows of a layer, or None if the mesh is not made of rows, and its thickness in cm."""
    if entry.rows is not None and entry.thickness is not None:
        raise CaseError(f"layer {name!r}: both rows and thickness", key=f"{key}.rows", remedy="leave one of them out")
    if entry.rows is None and entry.thickness is None:
        remedy = "write thickness = 1.0 (um)" + ("" if mesh.spacing is None else ", or rows = 400")
        raise CaseError(f"layer {name!r} has no thickness", key=f"{key}.thickness", remedy=remedy)
    if entry.thickness is not None and not entry.thickness >= THINNEST:
        positive = entry.thickness > 0
        raise CaseError(
            f"layer {name!r} is {1e4 * entry.thickness:g} um thick"
            + (", less than the distance between atoms" if positive else ""),
            key=f"{key}.thickness",
            remedy=f"give a thickness of {1e4 * THINNEST:g} um ({1e7 * THINNEST:g} nm) or more"
            + (", or leave the layer out" if positive else ""),
        )
    if mesh.spacing is None:
        if entry.rows is not None:
            raise CaseError(
                f"layer {name!r} has rows, but the mesh has no spacing",
                key=f"{key}.rows",
                remedy='write [photodiode.mesh] spacing = "2.5 nm", or give the layer a thickness',
            )
        return None, _known(entry.thickness)
    rows = entry.rows if entry.rows is not None else round(_known(entry.thickness) / mesh.spacing)
    thickness = rows * mesh.spacing if entry.thickness is None else entry.thickness
    if rows < 1 or not math.isclose(rows * mesh.spacing, thickness, rel_tol=1e-6):
        raise CaseError(
            f"layer {name!r}: {1e4 * thickness:g} um is {thickness / mesh.spacing:.4g} rows of "
            f"{1e7 * mesh.spacing:g} nm",
            key=f"{key}.thickness",
            remedy=f"use a whole number of rows: {1e4 * max(1, rows) * mesh.spacing:g} um",
        )
    if rows % mesh.coarsen:
        raise CaseError(
            f"layer {name!r} has {rows} rows, which cannot be merged in groups of {mesh.coarsen}",
            key="photodiode.mesh.coarsen",
            remedy="choose a number that divides the rows of all layers",
        )
    return rows // mesh.coarsen, thickness


def _known(thickness: float | None) -> float:
    assert thickness is not None
    return thickness


def mesh_of(settings: PhotodiodeSettings, layers: Sequence[Layer]) -> Mesh:
    """Return the mesh from the anode to the cathode."""
    mesh = settings.mesh
    chosen = [name for name in ("spacing", "nodes", "positions", "graded") if getattr(mesh, name) is not None]
    if len(chosen) > 1:
        raise CaseError(
            f"[photodiode.mesh] has both {chosen[0]} and {chosen[1]}",
            key=f"photodiode.mesh.{chosen[1]}",
            remedy="leave one of them out",
        )
    if mesh.coarsen > 1 and mesh.spacing is None:
        raise CaseError(
            "only a mesh of rows can be coarsened",
            key="photodiode.mesh.coarsen",
            remedy='write spacing = "2.5 nm", or leave it out',
        )
    ends = np.concatenate(([0.0], np.cumsum([layer.thickness for layer in layers])))
    if mesh.spacing is not None:
        rows = [layer.rows or 1 for layer in layers]
        return spaced(rows, [mesh.spacing * mesh.coarsen] * len(rows))
    if mesh.nodes is not None:
        return uniform(float(ends[-1]), mesh.nodes)
    if mesh.positions is not None:
        return _placed(mesh.positions, float(ends[-1]))
    return _graded(settings, layers, ends)


def _graded(settings: PhotodiodeSettings, layers: Sequence[Layer], ends: NDArray[np.float64]) -> Mesh:
    """Return a mesh with spacings that grow from the boundaries of layers and regions."""
    said_graded = settings.mesh.graded or GradedSettings()
    hetero = [a.at(1.0) != b.at(0.0) for a, b in pairwise(layers)]
    changes = [float(end) for end, changed in zip(ends[1:-1], hetero) if changed]
    marks = _marks(ends, [edge for region in settings.regions for edge in edges_of(region, 0)], said_graded.first)
    return graded(
        marks,
        said_graded.first,
        said_graded.growth,
        max(said_graded.cap, said_graded.first),
        _between(settings, marks, 0, changes),
        _inner(marks) if len(marks) > 2 else [True, True],
    )


def _between(
    settings: PhotodiodeSettings, marks: Sequence[float], axis: int, known: Sequence[float] = ()
) -> list[bool]:
    """Return which marks lie between two nodes: inner ones where the material changes, at `known` places or regions."""
    places = [*known, *(place for region in settings.regions for place in steps_of(region, axis))]
    near = [any(math.isclose(mark, place, rel_tol=_SAME) for place in places) for mark in marks]
    return [found and inside for found, inside in zip(near, _inner(marks))]


def _inner(marks: Sequence[float]) -> list[bool]:
    """Return which marks lie between the ends of the device."""
    return [0 < k < len(marks) - 1 for k in range(len(marks))]


def _marks(ends: Iterable[float], edges: Iterable[float], first: float) -> list[float]:
    """Return the ends of layers and the edges of regions more than two first spacings away from other marks."""
    marks = [float(end) for end in ends]
    for edge in edges:
        if marks[0] < edge < max(marks) and min(abs(edge - mark) for mark in marks) > 2 * first:
            marks.append(edge)
    return sorted(marks)


def _placed(positions: Sequence[float], length: float) -> Mesh:
    for k, (low, high) in enumerate(pairwise(positions)):
        if not high > low:
            raise CaseError(
                f"nodes {k} and {k + 1} of the mesh are at {1e4 * low:g} and {1e4 * high:g} um",
                key=f"photodiode.mesh.positions[{k + 1}]",
                remedy="give the nodes in ascending order, each once",
            )
    for where, value, wanted in (("first", positions[0], 0.0), ("last", positions[-1], length)):
        if not math.isclose(value, wanted, rel_tol=1e-9, abs_tol=1e-12):
            raise CaseError(
                f"the {where} node is at {1e4 * value:g} um, but that end of the device is at {1e4 * wanted:g} um",
                key="photodiode.mesh.positions",
                remedy="let the nodes reach from one contact to the other",
            )
    return placed(positions)


def across_of(settings: PhotodiodeSettings) -> Mesh | None:
    """Return the columns along y, or along the radius; None for a device with one axis."""
    across = _columns(settings)
    if settings.symmetry == "plane":
        return across
    if across is None:
        raise CaseError(
            "a round device with one axis",
            key="photodiode.symmetry",
            remedy='write width = "10 um", its radius, and columns = 40, or leave symmetry out',
        )
    return replace(across, radial=True)


def _columns(settings: PhotodiodeSettings) -> Mesh | None:
    if settings.mesh.across is not None:
        return _graded_across(settings, settings.mesh.across)
    if (settings.width is None) != (settings.columns is None):
        missing = "columns" if settings.columns is None else "width"
        raise CaseError(
            f"{'width' if missing == 'columns' else 'columns'} without {missing}",
            key=f"photodiode.{missing}",
            remedy='write both: width = "10 um" and columns = 40, or neither',
        )
    if settings.width is None or settings.columns is None:
        return None
    return spaced([settings.columns], [settings.width / settings.columns])


def _graded_across(settings: PhotodiodeSettings, across: GradedSettings) -> Mesh:
    """Return columns with spacings that grow from the edges of regions and contacts."""
    if settings.width is None or settings.columns is not None:
        given = "without a width" if settings.width is None else "and columns"
        raise CaseError(
            f"spacings across {given}",
            key="photodiode.mesh.across",
            remedy='give a width, and either columns = 40 or across = {first = "5 nm"}',
        )
    contacts = (settings.contacts.anode, settings.contacts.cathode)
    boxes = [contact.y for contact in contacts if isinstance(contact, ContactSettings) and contact.y is not None]
    edges = [edge for box in (*boxes, *(edges_of(region, 1) for region in settings.regions)) for edge in box]
    marks = _marks([0.0, settings.width], edges, across.first)
    return graded(
        marks,
        across.first,
        across.growth,
        max(across.cap, across.first),
        _between(settings, marks, 1),
        _inner(marks),
    )
