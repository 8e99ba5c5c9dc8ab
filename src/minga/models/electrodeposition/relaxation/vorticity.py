"""Flow by vorticity and vector potential, relaxed point by point.

    d zeta/dt + curl (zeta x v) = nu lap zeta + curl f / rho0,    -lap psi = zeta,    v = curl psi,  div psi = 0

(eqs. 4-6 of Milano, Mocskos and Marshall, with the sign of gravity corrected). The acceleration of the fluid,
f / rho0 - zeta x v, is evaluated on faces; its curl drives the vorticity. On walls, psi has no tangential component. If
solids enclose no hole, the solution is the same as that of the staggered scheme for velocity and pressure. There is no
mean flow through periodic ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, where
from minga.lang.kernel import Kernel
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.relaxation.edges import (
    INSIDE,
    SOLID,
    WALL,
    Calculus,
    components,
    cyclic,
    edge_mark,
    node_mark,
)
from minga.space.boundary import fixed
from minga.space.box import Box
from minga.space.field import Field, Register, Slot

Readers = Sequence[CellReader]
_LETTERS = "yzx"


@dataclass(frozen=True, eq=False)
class VectorPotential:
    """The fields of the flow on edges, and the recording of its sweeps.

    Attributes
    ----------
    kind
        Field of the kinds of cells.
    velocity
        Velocities, one field for each axis of the grid, at its faces; they are written by the sweeps.
    viscosity
        Kinematic viscosity, m2/s.
    order, across
        Order of the points in a sweep, and whether blocks wait for one another.
    wall
        Weight of the new vorticity at walls.
    push
        Acceleration of the fluid at faces, m/s2, written by the caller (0 where fluid does not pass).
    psi
        Vector potential on edges, by component, m2/s.
    zeta
        Vorticity on edges, by component, 1/s; slots now, next.
    """

    kind: Field
    velocity: tuple[Field, ...]
    lengths: Lengths
    viscosity: float
    order: str | None
    across: str
    wall: float = 0.6
    push: tuple[Field, ...] = field(init=False)
    psi: Mapping[int, Field] = field(init=False)
    zeta: Mapping[int, Field] = field(init=False)
    marks: Mapping[int, Field] = field(init=False)
    nodes: tuple[Field, ...] = field(init=False)
    size: Register = field(default_factory=lambda: Register("vorticity"))

    def __post_init__(self) -> None:
        grid, put = self.lengths.grid, object.__setattr__
        ndim = grid.ndim

        def on_edges(name: str, a: int, unit: str, **options: object) -> Field:
            letter = grid.axes[a] if a < ndim else _third(grid.axes)
            centre = tuple(axis for axis in range(ndim) if axis != a)
            return Field(f"{name}_{letter}", grid, centre=centre, boundary=fixed(0), unit=unit, **options)  # type: ignore[arg-type]

        parts = components(ndim)
        put(self, "psi", {a: on_edges("psi", a, "m2/s") for a in parts})
        put(self, "zeta", {a: on_edges("zeta", a, "1/s", slots=2) for a in parts})
        put(self, "marks", {a: on_edges("edges", a, "1", dtype="u1") for a in parts})
        nodes = (Field("nodes", grid, "u1", centre=tuple(range(3)), boundary=fixed(0)),) if ndim == 3 else ()
        put(self, "nodes", nodes)
        put(
            self,
            "push",
            tuple(Field(f"push_{n}", grid, centre=(n,), boundary=fixed(0.0), unit="m/s2") for n in grid.axes),
        )

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields except the velocities and `kind`."""
        return (*self.psi.values(), *self.zeta.values(), *self.marks.values(), *self.nodes, *self.push)

    def setup(self, program: Program) -> None:
        """Record the marking of edges and nodes from `kind`."""
        for a, target in self.marks.items():
            program.apply(_mark(self.lengths.ndim, a), self.kind, target)
        for target in self.nodes:
            program.apply(_mark(self.lengths.ndim, None), self.kind, target)

    def inner_faces(self, axis: int) -> Box:
        """Return the faces across an axis that are not at the grid's ends."""
        points = self.velocity[axis].points
        if self.lengths.grid.periodic[axis]:
            return points
        lo, hi = list(points.lo), list(points.hi)
        lo[axis] += 1
        hi[axis] -= 1
        return Box(tuple(lo), tuple(hi))

    def sweep(
        self, program: Program, velocity: Sequence[Slot | Field], per_dt: float, floor: float
    ) -> tuple[Register, Register]:
        """Record one sweep over vorticity, vector potential and velocity.

        Parameters
        ----------
        program
            The program to record in.
        velocity
            Fields of the velocities to write.
        per_dt
            Inverse of the time step, 1/s.
        floor
            Vorticity below which errors do not count, 1/s.

        Returns
        -------
        tuple
            Registers of the largest scaled residual and of the largest scaled change.
        """
        lengths = self.lengths
        widths, zeta = list(lengths.fields), [z.next for z in self.zeta.values()]
        psi = list(self.psi.values())
        worst, change, size = Register("flow residual"), Register("flow change"), Register("largest vorticity")
        program.let(worst, 0.0)
        program.let(change, 0.0)
        program.let(size, floor)
        slowest = per_dt + self.viscosity * lengths.smoothest
        for number, a in enumerate(self.zeta):
            found: Any = program.apply(
                self._transport(number, a, per_dt, slowest), zeta, self.zeta[a].now, psi, list(self.push), self.kind,
                self.marks[a], list(self.nodes), widths,
            )  # fmt: skip
            _raise(program, worst, found.residual / self.size)
            _raise(program, change, found.change / self.size)
            _raise(program, size, found.size)
        for number, a in enumerate(self.psi):
            seen: Any = program.apply(self._invert(number, a), psi, zeta, self.marks[a], list(self.nodes), widths)
            _raise(program, worst, seen.residual / self.size)
            _raise(program, change, seen.change / self.size)
        for axis, target in enumerate(velocity):
            program.apply(self._velocity(axis), psi, target, widths)
        program.let(self.size, size)
        return worst, change

    # Kernels -------------------------------------------------------------------------------------------------------
    def _transport(self, number: int, a: int, per_dt: float, slowest: float) -> Kernel:
        """Return the kernel of component a of the vorticity: relaxed between fluid cells, no slip on walls."""
        here, parts = (0,) * self.lengths.ndim, tuple(self.zeta)
        nu, weight_of_wall = self.viscosity, self.wall

        def relax(
            zeta: Readers,
            old: CellReader,
            psi: Readers,
            push: Readers,
            kind: CellReader,
            mark: CellReader,
            nodes: Readers,
            widths: Readers,
        ) -> dict[str, Reduced]:
            calculus = Calculus(self.lengths, list(widths))
            present = zeta[number][here]
            fields = dict(zip(parts, zeta, strict=True))
            spread, weight = calculus.minus_laplacian(fields, a, nodes[0] if nodes else None)
            driven = calculus.curl_on_edge(lambda axis, at: push[axis][at], a, here)
            defect = per_dt * (old[here] - present) + driven - nu * spread
            at_wall = calculus.no_slip(kind, dict(zip(parts, psi, strict=True)), a) - present
            inside, wall = mark[here] == INSIDE, mark[here] == WALL
            step = where(inside, defect / (per_dt + nu * weight), where(wall, weight_of_wall * at_wall, 0.0))
            new = where(mark[here] == SOLID, 0.0, present + step)
            zeta[number][here] = new
            residual = where(inside, mg.abs(defect) / slowest, where(wall, mg.abs(at_wall), 0.0))
            return {"residual": mg.max(residual), "change": mg.max(mg.abs(step)), "size": mg.max(mg.abs(new))}

        return kernel(order=self.order, across=self.across)(relax)  # type: ignore[call-overload,no-any-return]

    def _invert(self, number: int, a: int) -> Kernel:
        """Return the kernel of component a of the vector potential, 0 on walls."""
        here, parts = (0,) * self.lengths.ndim, tuple(self.psi)
        smoothest = self.lengths.smoothest

        def relax(psi: Readers, zeta: Readers, mark: CellReader, nodes: Readers, widths: Readers) -> dict[str, Reduced]:
            calculus = Calculus(self.lengths, list(widths))
            fields = dict(zip(parts, psi, strict=True))
            curls, weight = calculus.minus_laplacian(fields, a, nodes[0] if nodes else None)
            defect = where(mark[here] == INSIDE, zeta[number][here] - curls, 0.0)
            step = defect / weight
            psi[number][here] = where(mark[here] == INSIDE, psi[number][here] + step, 0.0)
            return {"residual": mg.max(mg.abs(defect)), "change": mg.max(mg.abs(step) * smoothest)}

        return kernel(order=self.order, across=self.across)(relax)  # type: ignore[call-overload,no-any-return]

    def _velocity(self, axis: int) -> Kernel:
        """Return the kernel of the velocity at faces across an axis, the curl of the vector potential."""
        here, parts = (0,) * self.lengths.ndim, tuple(self.psi)

        def curl(psi: Readers, target: CellReader, widths: Readers) -> None:
            calculus = Calculus(self.lengths, list(widths))
            target[here] = calculus.curl_on_face(dict(zip(parts, psi, strict=True)), axis, here)

        return kernel(curl)

    def turning(self, axis: int, zeta: Mapping[int, CellReader], velocity: Readers) -> Node:
        """Return component `axis` of zeta x v at a face across it, for a kernel over inner faces."""
        here = (0,) * self.lengths.ndim
        c, a = cyclic(axis)
        value: Node | None = None
        for edge, other, sign in ((c, a, 1.0), (a, c, -1.0)):
            if edge not in zeta:
                continue
            for end in (0, 1):
                at = tuple(end if n == other else 0 for n in range(len(here)))
                below = tuple(end if n == other else -1 if n == axis else 0 for n in range(len(here)))
                term = 0.25 * sign * zeta[edge][at] * (velocity[other][at] + velocity[other][below])
                value = term if value is None else value + term
        assert value is not None
        return value


def _third(axes: Sequence[str]) -> str:
    """Return the axis that a grid of two axes lacks."""
    return next(letter for letter in _LETTERS if letter not in axes)


def _raise(program: Program, register: Register, value: object) -> None:
    """Record register = max(register, value)."""
    program.let(register, mg.max(register, value))


def _mark(ndim: int, a: int | None) -> Kernel:
    here = (0,) * ndim

    def mark(kind: CellReader, target: CellReader) -> None:
        target[here] = node_mark(kind) if a is None else edge_mark(kind, a)

    return kernel(mark)
