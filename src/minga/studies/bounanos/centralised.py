"""Centralised organisation: segments exchange with a parent only, once per iteration.

As in the paper's MOSIX version, at the end of an iteration the parent receives from every child its boundary rows and
its change, tests for convergence, and sends to every child the neighbours' rows or the command to end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Channel, Comm, Envelope
from minga.errors import LayoutError
from minga.models.photodiode.pointwise.scheme import Pointwise
from minga.models.photodiode.solver.problem import Curve
from minga.models.photodiode.structure.device import Device
from minga.studies.bounanos.segment import STATE, Order, Segment

__all__ = ["Solution", "solve_centralised"]

Floats = NDArray[np.float64]

UP: Final = 2 * len(STATE) + 1
"""Numbers in a message to the parent: the segment's first and last row, and its largest change."""

DOWN: Final = 2 * len(STATE) + 1
"""Numbers in a message from the parent: the neighbours' rows, and 1 to continue or 0 to end."""


@dataclass(frozen=True, slots=True)
class Solution:
    """Result of a run.

    Attributes
    ----------
    state
        Values at all nodes of the device by name: phi in kT/q, electrons and holes in 1/cm3, Newton steps.
    iterations
        Number of iterations.
    change
        Largest change of the last iteration.
    seconds
        Time of the iterations, without setup.
    """

    state: dict[str, Floats]
    iterations: int
    change: float
    seconds: float


def solve_centralised(
    device: Device, ends: Sequence[int], voltage: float, curve: Curve, how: Pointwise, comm: Comm
) -> Solution | None:
    """Solve a device at a voltage; collective. Rank 0 is the parent and computes nothing.

    The other ranks share the segments between `ends` in turns. The bits are those of the pointwise scheme with the same
    `segments`.

    Returns
    -------
    Solution or None
        The solution on rank 0, None on other ranks.

    Raises
    ------
    LayoutError
        If there are no children.
    """
    if comm.size < 2:
        raise LayoutError(
            "a centralised run on one rank has a parent but no child", remedy="start it on two ranks or more"
        )
    segments, children = len(ends) - 1, comm.size - 1
    owner = [1 + number % children for number in range(segments)]
    if comm.rank == 0:
        parent = _Parent(comm, owner)
        comm.barrier()
        began = time.perf_counter()
        iterations, change = parent.serve(how)
        seconds = time.perf_counter() - began
        parts = comm.gather(None)
        assert parts is not None
        rows = {number: state for part in parts[1:] for number, state in part}
        state = {name: np.concatenate([rows[k][name] for k in range(segments)]) for name in rows[0]}
        return Solution(state, iterations, change, seconds)
    own = [number for number in range(segments) if owner[number] == comm.rank]
    parts_here = [Segment(Order.of(device, ends, number, voltage, curve, how)) for number in own]
    comm.barrier()
    _child(comm, own, parts_here)
    comm.gather([(number, part.state()) for number, part in zip(own, parts_here, strict=True)])
    for part in parts_here:
        part.close()
    return None


def _buffer(count: int) -> tuple[NDArray[np.uint8], Floats]:
    """Return the bytes of a message, and the same memory as numbers."""
    octets = np.zeros(8 * count, np.uint8)
    return octets, octets.view(np.float64)


class _Parent:
    """Parent, with which all segments communicate."""

    def __init__(self, comm: Comm, owner: Sequence[int]) -> None:
        self._up = [_buffer(UP) for _ in owner]
        self._down = [_buffer(DOWN) for _ in owner]
        # One message per segment, since each is a process of its own in the paper.
        self._receive = [
            comm.channel([], [Envelope(rank, octets)], 2 * k)
            for k, (rank, (octets, _)) in enumerate(zip(owner, self._up, strict=True))
        ]
        self._send = [
            comm.channel([Envelope(rank, octets)], [], 2 * k + 1)
            for k, (rank, (octets, _)) in enumerate(zip(owner, self._down, strict=True))
        ]

    def serve(self, how: Pointwise) -> tuple[int, float]:
        """Serve until convergence or the limit; return the iterations, and the largest change of the last one."""
        iterations = 0
        while True:
            for channel in self._receive:
                channel.start()
            for channel in self._receive:
                channel.wait()
            iterations += 1
            change = max(float(values[-1]) for _, values in self._up)
            going = change >= how.tolerance and iterations < how.limit
            self._answer(going)
            if not going:
                _close([*self._receive, *self._send])
                return iterations, change

    def _answer(self, going: bool) -> None:
        three, last = len(STATE), len(self._up) - 1
        for number, (_, values) in enumerate(self._down):
            values[:three] = self._up[number - 1][1][three : 2 * three] if number > 0 else 0.0
            values[three : 2 * three] = self._up[number + 1][1][:three] if number < last else 0.0
            values[-1] = going
        for channel in self._send:
            channel.start()
        for channel in self._send:
            channel.wait()


def _child(comm: Comm, own: Sequence[int], parts: Sequence[Segment]) -> None:
    """Iterate the own segments until the parent ends the run."""
    three = len(STATE)
    up, down = [_buffer(UP) for _ in own], [_buffer(DOWN) for _ in own]
    send = [comm.channel([Envelope(0, octets)], [], 2 * k) for k, (octets, _) in zip(own, up, strict=True)]
    receive = [comm.channel([], [Envelope(0, octets)], 2 * k + 1) for k, (octets, _) in zip(own, down, strict=True)]
    going = bool(own)
    while going:
        for part, channel, (_, values), answer in zip(parts, send, up, receive, strict=True):
            change = part.iterate()
            values[:] = (*part.boundary("low"), *part.boundary("high"), change)
            answer.start()
            channel.start()
        for part, channel, (_, values), answer in zip(parts, send, down, receive, strict=True):
            channel.wait()
            answer.wait()
            going = bool(values[-1])
            if part.reach.low < part.reach.first:
                part.receive("low", values[:three].tolist())
            if part.reach.high > part.reach.end:
                part.receive("high", values[three : 2 * three].tolist())
    _close([*send, *receive])


def _close(channels: Sequence[Channel]) -> None:
    for channel in channels:
        channel.close()
