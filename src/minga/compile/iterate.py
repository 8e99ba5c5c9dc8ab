"""Loops inside a cell (`mg.iterate`) as LLVM IR, for one cell or for the cells of a vector together.

A vector continues as long as one of its cells does. The state of the other cells is kept, and as the condition depends
on nothing else, it stays false for them: no mask needs to be carried from one iteration to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from minga.lang.expr import Node
from minga.lang.loop import Loop

if TYPE_CHECKING:
    from minga.compile.ir import Body

__all__ = ["print_iterate"]


def print_iterate(body: Body, loop: Loop, args: Sequence[str]) -> tuple[str, list[str]]:
    """Print a loop for given values of the node's arguments; return the number of iterations and the final state."""
    text = body.text
    kinds = [body.type(node.dtype) for node in loop.following]
    starts, captured = args[: len(kinds)], args[len(kinds) :]
    state, after = ([f"%{text.fresh(stem)}" for _ in kinds] for stem in ("x", "y"))
    turn, next_turn = (f"%{text.fresh('t')}" for _ in range(2))
    head, again, latch, done = (text.fresh(stem) for stem in ("while", "again", "round", "ended"))
    before = text.block
    text.emit(f"br label %{head}")
    text.start(head)
    for kind, value, start, behind in zip(kinds, state, starts, after, strict=True):
        text.emit(f"{value} = phi {kind} [ {start}, %{before} ], [ {behind}, %{latch} ]")
    text.emit(f"{turn} = phi i32 [ 0, %{before} ], [ {next_turn}, %{latch} ]")
    rounds, more_rounds = turn, next_turn
    if body.width > 1:
        rounds, more_rounds = (f"%{text.fresh('n')}" for _ in range(2))
        text.emit(f"{rounds} = phi {body.type('i4')} [ zeroinitializer, %{before} ], [ {more_rounds}, %{latch} ]")

    def leaf(node: Node) -> str:
        return (state if node.op == "state" else captured)[int(node.data)]

    inner = body.nested(leaf)
    going = inner(loop.condition)
    some = going
    if body.width > 1:
        some = text.let(f"call i1 @llvm.vector.reduce.or.v{body.width}i1({body.type('bool')} {going})")
    few = text.let(f"icmp slt i32 {turn}, {loop.limit}")
    text.emit(f"br i1 {text.let(f'and i1 {few}, {some}')}, label %{again}, label %{done}")
    text.start(again)
    following = inner.all(loop.following)
    end = text.block
    text.emit(f"br label %{latch}")
    text.start(latch)
    for kind, value, behind, old in zip(kinds, following, after, state, strict=True):
        text.emit(f"{behind} = {_kept(body, kind, value, old, going, end)}")
    text.emit(f"{next_turn} = add nsw i32 {turn}, 1")
    if body.width > 1:
        one = text.let(f"zext {body.type('bool')} {going} to {body.type('i4')}")
        text.emit(f"{more_rounds} = add {body.type('i4')} {rounds}, {one}")
    text.emit(f"br label %{head}")
    text.start(done)
    return rounds, state


def _kept(body: Body, kind: str, value: str, old: str, going: str, end: str) -> str:
    """Return the new value in lanes that continue, the old one in others."""
    if body.width == 1:
        return f"phi {kind} [ {value}, %{end} ]"
    return f"select {body.type('bool')} {going}, {kind} {value}, {kind} {old}"
