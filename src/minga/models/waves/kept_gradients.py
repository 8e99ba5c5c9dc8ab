"""Prepared gradients of the shots of an inversion, kept from one medium to the next.

The medium of an inversion changes from iteration to iteration, and what is computed for a shot does not: its step, the
adjoint and the native code are those of the first iteration, with other values of the medium.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from minga.models.waves.gradient import PreparedGradient
from minga.models.waves.medium import Floats
from minga.models.waves.misfits import Misfit
from minga.models.waves.sensors import Summed
from minga.models.waves.shot import AnyWaves, Shot

__all__ = ["KeptGradients"]

ROOM: Final = 1 << 28
"""Most bytes of the fields of all kept gradients.

Halos, tables of samples and native code are not counted, nor are stored states, whose memory is lent for a run only.
"""


class KeptGradients:
    """Prepared gradients of shots by their numbers; those beyond some memory are prepared for each medium."""

    def __init__(self) -> None:
        self._known: dict[int, PreparedGradient] = {}

    def of(
        self, number: int, waves: AnyWaves, shot: Shot, wrt: Sequence[str], misfit: str | Misfit, memory: int,
        threads: int,
    ) -> tuple[float, dict[str, Floats] | None]:  # fmt: skip
        """Return the misfit of a shot and its gradient, with the bits of `shot_gradient`.

        Parameters
        ----------
        number
            Number of the shot.
        waves, shot, wrt, misfit, memory, threads
            As for `shot_gradient`; equal for all calls of a shot, waves aside.
        """
        # It is taken out while it computes: an error then leaves nothing behind, and no other call uses its engine.
        prepared = self._known.pop(number, None)
        if prepared is not None and not _serves(prepared, waves, shot):
            prepared.close()
            prepared = None
        if prepared is None:
            prepared = PreparedGradient(waves, shot, wrt, threads=threads)
        try:
            found = prepared.of(waves, misfit, memory)
        except BaseException:
            prepared.close()
            raise
        if prepared.bytes + sum(each.bytes for each in self._known.values()) <= ROOM:
            self._known[number] = prepared
        else:
            prepared.close()
        return found


def _serves(prepared: PreparedGradient, waves: AnyWaves, shot: Shot) -> bool:
    """Return whether a gradient was prepared for a shot and waves of this structure, with the same receivers."""
    if prepared.run.shot is not shot or prepared.structure != waves.structure:
        return False
    known = prepared.run.sensors.quantities
    if not any(isinstance(each, Summed) and each.depends for each in known):
        return True
    pairs = zip(known, waves.sensors(shot.receivers, shot.record).quantities, strict=True)
    return all(a.same(b) for a, b in pairs if isinstance(a, Summed) and isinstance(b, Summed))
