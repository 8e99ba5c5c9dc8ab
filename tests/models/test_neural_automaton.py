"""Neural automata, loops of one kernel with learned weights: their gradients against differences and tangents."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg

CHANNELS, HIDDEN, STEPS, INPUTS = 2, 2, 6, 5


@mg.kernel
def update(state, weights, new):
    """One step: constant stencils, a hidden layer with a kink, and the change of each channel."""
    seen = [1.0]
    for c in state:
        seen += [c[0, 0], 0.25 * (c[-1, 0] + c[1, 0] + c[0, -1] + c[0, 1]) - c[0, 0]]
    factors = iter(weights)
    hidden = []
    for _ in range(HIDDEN):
        hidden.append(mg.local(mg.max(sum(next(factors)[0, 0] * value for value in seen), 0.0)))
    for c, after in zip(state, new, strict=True):
        after[0, 0] = c[0, 0] + sum(next(factors)[0, 0] * value[0, 0] for value in hidden)


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
def test_gradients_by_weights_are_those_of_differences_and_tangents(boundary):
    grid = mg.Grid((5, 6), periodic=boundary == "periodic")
    ends = {} if boundary == "periodic" else {"boundary": mg.fixed(0.0)}
    state = [mg.Field(f"c{k}", grid, slots=2, **ends) for k in range(CHANNELS)]
    weights = [mg.Field(f"w{k}", grid) for k in range(HIDDEN * (INPUTS + CHANNELS))]
    step = mg.Program("neural")
    step.apply(update, state, weights, [c.next for c in state])
    step.rotate(*state)
    adjoint, tangent = mg.adjoint(step, wrt=weights), mg.tangent(step, wrt=weights)
    rng = np.random.default_rng(4)
    first, target = rng.random(grid.shape), rng.random(grid.shape)
    values, direction = 0.3 * rng.standard_normal((2, len(weights)))
    last = state[0]

    def start(engine, numbers):
        for c in state:
            engine.set(c, first)
        for field, number in zip(weights, numbers, strict=True):
            engine.set(field, np.full(grid.shape, number))

    def misfit(engine, numbers):
        start(engine, numbers)
        engine.run(step, STEPS)
        return 0.5 * ((engine.gather(last) - target) ** 2).sum()

    def seed(engine, n):
        if n == STEPS:
            for box, found in engine.blocks(adjoint.of[last], write=True):
                found += (engine.gather(last) - target)[box.slices((0, 0))]

    with mg.Engine({grid: mg.Layout.single(grid.box, 1)}) as engine:
        start(engine, values)
        adjoint.run(engine, STEPS, seed=seed)
        gradient = np.array([engine.gather(adjoint.of[field]).sum() for field in weights])
        start(engine, values)
        for field, number in zip(weights, direction, strict=True):
            engine.set(tangent.of[field], np.full(grid.shape, number))
        engine.run(tangent.step, STEPS)
        slope = ((engine.gather(last) - target) * engine.gather(tangent.of[last])).sum()
        assert gradient @ direction == pytest.approx(slope, rel=1e-12)
        little = 1e-6 * direction
        difference = (misfit(engine, values + little) - misfit(engine, values - little)) / 2e-6
        assert gradient @ direction == pytest.approx(difference, rel=1e-7)
        assert (gradient != 0).sum() > len(weights) // 2
