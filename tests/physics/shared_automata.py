"""Automata whose digests must not depend on how they are run; as a script on MPI ranks: prints each of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import minga as mg
from minga.engine.model import Model
from minga.lang.expr import Node
from minga.lang.rule_context import RuleContext

STEPS = 20


@mg.rule(states=3, neighbourhood=mg.von_neumann(1))
def forest(cell: Node, near: RuleContext) -> Node:
    chance = mg.random()
    tree = mg.where(near.any(2) | (chance < 0.01), 2, 1)
    return mg.where(cell == 1, tree, mg.where((cell == 0) & (chance < 0.3), 1, 0))


@mg.rule(dtype="f8", neighbourhood=mg.von_neumann(1))
def relax(cell: Node, near: RuleContext) -> Node:
    return 0.25 * near.sum()


@mg.rule(neighbourhood=mg.offsets([(0, 3), (-2, 0), (1, -1)]))
def lopsided(cell: Node, near: RuleContext) -> Node:
    return near[0, 3] ^ (near[-2, 0] & near[1, -1]) ^ cell


MODELS: dict[str, Callable[[], Model]] = {
    "life": lambda: mg.automaton("B3/S23", (64, 1000), init={"soup": 0.4, "seed": 2}),
    "life without wrap": lambda: mg.automaton("B3/S23", (70, 300), init={"soup": 0.4}, boundary="fixed"),
    "born of nothing": lambda: mg.automaton("B02/S13", (64, 320), init={"soup": 0.1}, boundary="fixed"),
    "forest": lambda: mg.automaton(forest, (64, 330), init={"soup": 0.5}, seed=4),
    "laplace": lambda: mg.automaton(
        relax, (64, 330), init={"soup": 0.5}, boundary=[["fixed", ["fixed", 1]], "reflect"]
    ),
    "lopsided": lambda: mg.automaton(lopsided, (61, 333), init={"soup": 0.3}),
    "critical rings": lambda: mg.automaton("W110", (1000,), init={"soup": 0.5}),
    "space": lambda: mg.automaton("B5/S45", (9, 12, 130), init={"soup": 0.25}),
}


def digest(name: str, comm: Any = None, **options: Any) -> str:
    return str(mg.run(MODELS[name](), steps=STEPS, comm=comm, **options).digest)


if __name__ == "__main__":
    world = mg.MPIComm()
    found = {name: digest(name, world) for name in MODELS}
    if world.rank == 0:
        print(json.dumps(found))
