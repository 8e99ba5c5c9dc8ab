"""The kernels that random Programs are made of, each for any number of axes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import minga as mg


def at(u: Any, axis: int = 0, step: int = 0) -> Any:
    """Cell `step` along an axis."""
    return u[tuple(step if a == axis % len(u.axes) else 0 for a in range(len(u.axes)))]


def put(u: Any, value: Any) -> None:
    u[(0,) * len(u.axes)] = value


def around(u: Any, radius: int = 1) -> list[Any]:
    """All cells of a box but the middle."""
    ndim = len(u.axes)
    offsets = itertools.product(range(-radius, radius + 1), repeat=ndim)
    return [u[o] for o in offsets if any(o)]


def total(values: Sequence[Any]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result


def faces(u: Any) -> list[Any]:
    return [at(u, a, s) for a in range(len(u.axes)) for s in (-1, 1)]


@mg.kernel
def star(u, new):
    put(new, 0.5 * at(u) + total(faces(u)) * (0.5 / (2 * len(u.axes))))


@mg.kernel
def box(u, new, *, weight=0.125):
    cells = around(u)
    put(new, weight * at(u) + (1.0 - weight) * (total(cells) * (1.0 / len(cells))))


@mg.kernel
def lopsided(u, new):
    put(new, 0.25 * at(u, 0, -2) + 0.5 * at(u, -1, 1) + 0.25 * at(u))


@mg.kernel
def far(u, new):
    put(new, 0.5 * at(u, -1, -3) - 0.25 * at(u, -1, 2) + 0.125 * at(u, 0, 1))


@mg.kernel
def blend(x, y, *, a):
    put(x, 0.5 * at(x) + a * at(y))


@mg.kernel
def life(c, new):
    n = total([mg.cast(v, "i4") for v in around(c)])
    alive = at(c) == 1
    put(new, mg.cast((n == 3) | ((n == 2) & alive), "u1"))
    return {"population": mg.count(alive), "oldest": mg.argmax(at(c))}


@mg.kernel
def burn(c, new):
    fire = (at(c, 0, -1) == 1) | (at(c, -1, 1) == 1)
    put(new, mg.where(fire & (mg.random() < 0.7), 1, mg.where(mg.random() < 0.1, 0, at(c))))


@mg.kernel
def noise(u, new):
    put(new, 0.5 * at(u) + mg.random() * at(u, -1, 1))


@mg.kernel
def indexed(u, new):
    put(new, 0.5 * at(u, 0, 1) + 0.03125 * mg.cast(mg.index(0), "f8") - 0.0625 * mg.cast(mg.index(-1), "f8"))


@mg.kernel
def placed(u, new):
    put(new, 0.25 * at(u, -1, -1) + mg.coordinate(0) + 0.5 * mg.coordinate(-1))


@mg.kernel
def fluxes(u, new):
    g = mg.local(at(u, -1, 1) - at(u))
    put(new, at(u) + 0.125 * (at_local(g, len(u.axes), -1, 0) - at_local(g, len(u.axes), -1, -1)))


@mg.kernel
def crossed(u, new):
    g = mg.local(0.5 * (at(u, 0, 1) - at(u, 0, -1)))
    h = mg.local(0.5 * (at_local(g, len(u.axes), -1, 1) + at_local(g, len(u.axes), -1, -1)))
    put(new, 0.75 * at(u) + 0.25 * at_local(h, len(u.axes), 0, 1))


def at_local(g: Any, ndim: int, axis: int, step: int) -> Any:
    return g[tuple(step if a == axis % ndim else 0 for a in range(ndim))]


@mg.kernel
def extremes(u):
    return {"hi": mg.max(at(u)), "lo": mg.min(at(u)), "where": mg.argmax(at(u)), "least": mg.argmin(abs(at(u)))}


@mg.kernel
def sums(k, c):
    return {"signed": mg.sum(at(k)), "odd": mg.count(at(k) % 2 == 1), "unsigned": mg.sum(at(c))}


@mg.kernel
def mean(u):
    return {"total": mg.sum(at(u)), "squares": mg.sum(at(u) * at(u))}


@mg.kernel
def descend(u, new):
    value = 0.5 * at(u) + 0.25 * (at(u, -1, -1) + at(u, 0, 1))
    put(new, value)
    return {"change": mg.sum(value - at(u)), "most": mg.max(value)}


@mg.kernel
def relax(u, new):
    value = total(faces(u)) * (1.0 / (2 * len(u.axes)))
    put(new, value)
    return mg.max(abs(value - at(u)))


@mg.kernel(order="red-black")
def checkered(u, f):
    put(u, 0.5 * at(u) + (0.5 / (2 * len(u.axes))) * total(faces(u)) + 0.125 * at(f))
    return mg.max(abs(at(u)))


@mg.kernel(order="lexicographic")
def lexicographic(u, f):
    put(u, 0.25 * at(u) + (0.75 / (2 * len(u.axes))) * total(faces(u)) + 0.125 * at(f))


@mg.kernel(order={0: +1})
def down(u, f):
    put(u, 0.5 * at(u, 0, -1) + 0.25 * at(f) + 0.125 * at(u, 0, 1))


@mg.kernel(order={-1: -1})
def back(u, f):
    put(u, 0.5 * at(u, -1, 1) - 0.25 * at(u, -1, -1) + 0.5 * at(f))
    return mg.min(at(u))


@mg.kernel
def counter(k, c, new):
    put(new, (at(k, 0, 1) * 3 + at(k, -1, -1) + mg.cast(at(c), "i4")) % 1009)


@mg.kernel
def gradient(u, p):
    put(p, at(u) - at(u, -1, -1))


@mg.kernel
def divergence(u, p, new):
    put(new, at(u) + 0.125 * (at(p, -1, 1) - at(p)))


@mg.kernel
def smooth_faces(p, q):
    put(q, 0.5 * at(p) + 0.25 * (at(p, -1, 1) + at(p, -1, -1)))


@mg.kernel
def profile(u, row, column, new):
    put(new, at(u) * row[0] + 0.25 * column[1] + 0.125 * column[-2] + 0.5 * at(u, 0, 1))


@mg.kernel
def along(row, other):
    other[0] = 0.5 * row[0] + 0.25 * (row[-1] + row[2])


@mg.kernel
def on_plate(u, p, new):
    put(new, 0.5 * at(p, -1, 1) + 0.25 * at(p, 0, -1) + 0.25 * at(u))


@mg.kernel
def several(fields, new, low):
    put(new, 0.5 * at(fields[0], 0, -1) + 0.25 * at(fields[1], -1, 1))
    put(low, mg.cast(at(fields[1]), "f4") * 0.5)
    return {"top": mg.max(at(fields[0]) - at(fields[1]))}


@mg.kernel
def single(g, u):
    put(u, 0.5 * at(u) + mg.cast(at(g, -1, 1) - at(g, 0, -1), "f8"))
