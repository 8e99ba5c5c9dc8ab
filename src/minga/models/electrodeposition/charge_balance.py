"""Kernels of the charge that an implicit step moves: coefficients and currents at faces, and the residual in cells."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from minga.compile.explain import Kernel, kernel
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.curvature import curved
from minga.models.electrodeposition.faces import Drive, displacement, face_values, moving
from minga.models.electrodeposition.film import behind, covered
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import FLUID, Flux, Problem
from minga.models.electrodeposition.rows import volume
from minga.models.electrodeposition.species_flux import species_flux
from minga.solve.laplacian import step

__all__ = ["charge_at_metal", "charge_cells", "charge_faces"]

Readers = Sequence[CellReader]


def charge_faces(problem: Problem, lengths: Lengths, axis: int) -> Kernel:
    """Return the kernel of the coefficients, currents and sums at the faces across an axis."""
    ndim = problem.grid.ndim
    here = (0,) * ndim
    per_mol = problem.constants.faraday
    balancing = {
        other: [n for n, s in enumerate(problem.species) if electrode.surfaces.get(s.name) == Flux(None)]
        for other, electrode in (("anode", problem.cathode), ("cathode", problem.anode))
    }

    @kernel
    def charge_at_faces(
        kind: CellReader, phi: CellReader, c: Readers, velocity: Readers, previous: Readers, widths: Readers,
        conductance: CellReader, wall: CellReader, carried: CellReader, screening: CellReader, thin: CellReader,
        spread: CellReader, up: Readers, down: Readers, gain: Readers, film: Readers, bent: Readers,
        equilibrium: Readers, *, voltage: Node, at_cathode: Node, at_anode: Node, ratio: Node, inverse: Node,
    ) -> dict[str, Reduced] | None:  # fmt: skip
        drive = Drive(voltage, at_cathode, at_anode)
        face = curved(problem, face_values(problem, lengths, axis, kind, phi, widths, drive), bent)
        crossed = behind(problem, face, film, equilibrium)
        v = moving(velocity, previous, axis, ratio)
        gains = iter(gain)
        found = []
        for number in range(len(c)):
            given = next(gains)[here] if number in problem.partners else None
            solved = up[number][here], down[number][here], given
            found.append(species_flux(problem, crossed, number, c, v, drive, solved))
        current, slope, quotient = as_node(0.0), as_node(0.0), as_node(0.0)
        for species, item in zip(problem.species, found, strict=True):
            current = current + (per_mol * species.charge) * item.amount
            part = (per_mol * species.charge) * item.slope
            slope = slope + part
            quotient = quotient + part / item.diffusivity
        series = None
        if film and face.above is not None:
            series = covered(problem, face, film, current, slope)
            current, slope = series.current, series.slope
        field_part = displacement(problem, face)
        charge = -field_part * face.difference
        total = field_part + inverse * slope
        through = inverse * current + charge
        conductance[here] = where(face.inside, total, 0.0)
        carried[here] = through
        # The mean diffusivity at which charge spreads; it does not matter where nothing conducts.
        mean = where(quotient > 0.0, slope / where(quotient > 0.0, quotient, 1.0), 0.0)
        reach = where(face.passable, inverse * mean * face.area / face.distance, 0.0)
        share = where(total > 0.0, field_part / where(total > 0.0, total, 1.0), 0.0)
        screening[here] = where(face.inside, reach * share, 0.0)
        if face.above is None or face.below is None or face.cathode is None:
            spread[here] = reach
            wall[here] = 0.0
            thin[here] = 0.0
            return None
        metal = face.above | face.below
        wall[here] = where(metal, total, 0.0)
        # The same at a metal, where not all ions conduct: the conductance over the screening charge in the cell.
        screens = as_node(0.0)
        for number, species in enumerate(problem.species):
            beside_metal = where(face.above, c[number][step(ndim, axis, -1)], c[number][here])
            screens = screens + (per_mol * problem.beta * species.charge**2) * (found[number].response * beside_metal)
        answer = where(screens > 0.0, slope / where(screens > 0.0, screens, 1.0), 0.0)
        reach = where(metal, inverse * answer, reach)
        spread[here] = reach
        thin[here] = where(metal, reach * share, 0.0)
        anode, cathode = metal & ~face.cathode, metal & face.cathode
        outwards = where(face.above, -1.0, 1.0)
        sums = {
            "carried": mg.sum(where(anode, outwards * through, 0.0)),
            "charge": mg.sum(where(anode, outwards * charge, 0.0)),
            "conductance": mg.sum(where(anode, total, 0.0)),
        }
        if series is not None:
            sums["film"] = mg.max(where(metal, series.missing, 0.0))
        for there, other, name in ((cathode, anode, "cathode"), (anode, cathode, "anode")):
            if balancing[name]:
                into = functools.reduce(lambda a, b: a - outwards * found[b].amount, balancing[name], as_node(0.0))
                sums[f"into_{name}"] = mg.sum(where(there, into, 0.0))
                sums["anode_area" if name == "cathode" else "cathode_area"] = mg.sum(where(other, face.area, 0.0))
        return sums

    return charge_at_faces


def charge_at_metal(problem: Problem, lengths: Lengths, axis: int, *, cathode: bool) -> Kernel:
    """Return the kernel of D from the cathode or the anode into the solution through the faces across an axis."""
    here = (0,) * problem.grid.ndim

    @kernel
    def sum_metal_charge(
        kind: CellReader, phi: CellReader, widths: Readers, charge: CellReader, *, voltage: Node
    ) -> Reduced:
        zero = as_node(0.0)
        face = face_values(problem, lengths, axis, kind, phi, widths, Drive(voltage, zero, zero))
        assert face.above is not None and face.below is not None and face.cathode is not None  # noqa: PT018
        inwards = where(face.above, face.difference, -face.difference) * displacement(problem, face)
        own = face.cathode if cathode else ~face.cathode
        value = where((face.above | face.below) & own, inwards, 0.0)
        charge[here] = value
        return mg.sum(value)

    return sum_metal_charge


def charge_cells(problem: Problem, lengths: Lengths) -> Kernel:
    """Return the kernel of the diagonals of both operators, and of the residual."""
    ndim = problem.grid.ndim
    here = (0,) * ndim

    @kernel
    def charge_in_cells(
        kind: CellReader, now: Readers, before: Readers, carried: Readers, walls: Readers, thin: Readers,
        widths: Readers, diagonal: CellReader, screened: CellReader, residual: CellReader, *, inverse: Node, h0: Node,
        h1: Node,
    ) -> None:  # fmt: skip
        size = volume(lengths, widths)
        charge, out, first, second = as_node(0.0), as_node(0.0), as_node(0.0), size
        for number, species in enumerate(problem.species):
            charge = charge + species.charge * (h0 * now[number][here] - h1 * before[number][here])
        for axis in range(ndim):
            up = step(ndim, axis, 1)
            out = out + (carried[axis][up] - carried[axis][here])
            first = first + (walls[axis][up] + walls[axis][here])
            second = second + (thin[axis][up] + thin[axis][here])
        fluid = kind[here] == FLUID
        diagonal[here] = where(fluid, first, 0.0)
        screened[here] = where(fluid, second, 0.0)
        residual[here] = where(fluid, problem.constants.faraday * inverse * size * charge - out, 0.0)

    return charge_in_cells
