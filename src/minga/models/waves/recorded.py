"""Registers of the samples of sensors, which Programs fill by native code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minga.engine import command as cmd
from minga.engine.bind import Binder
from minga.engine.call_kernels import call_functions
from minga.engine.compiled_call import CompiledCall
from minga.engine.engine import Engine
from minga.engine.exchange import copy_commands
from minga.engine.helpers import BoxAddress, Copy
from minga.engine.program import Program
from minga.models.waves.point_table import PointTable
from minga.models.waves.receivers import Taps
from minga.models.waves.sensors import Recorded, Sensors
from minga.space.field import Field, Register

__all__ = ["record_sensors", "record_taps"]


def record_sensors(program: Program, sensors: Sensors, names: Sequence[str]) -> tuple[Register, ...]:
    """Record the sampling of sensors in a Program; return the registers of the samples, quantity after quantity.

    Parameters
    ----------
    program
        The Program.
    sensors
        The sensors, none of them sums.
    names
        For each quantity, the first part of the names of its registers.
    """
    points = next(iter(sensors.taps.values())).weights.shape[1]
    registers = tuple(Register(f"{name}.{k}") for name in names for k in range(points))

    def sample(engine: Engine) -> None:
        engine.write_all(registers, sensors.sample(engine))

    def commands(binder: Binder) -> list[cmd.Command]:
        samples = {field: PointTable(taps, 1, 1) for field, taps in sensors.taps.items()}
        own = {field: table.values for field, table in samples.items()}
        found: list[cmd.Command] = []
        for field, table in samples.items():
            banded = table.sampling(field).banded
            assert banded is not None
            found += [each.kernel(binder, "receivers") for each in banded(binder, 0)]  # always into the same row
        whole, combined = _over_ranks(binder, own)
        binder.storage.of_all(registers)  # side by side
        for number, quantity in enumerate(sensors.quantities):
            assert isinstance(quantity, Recorded)
            targets = registers[number * points : (number + 1) * points]
            terms = [binder.control(whole[field]) for field in quantity.fields]
            args = [
                points, len(terms), binder.control(np.array(terms, np.int64)),
                binder.control(np.array([quantity.divisor])),
                binder.control(np.array([binder.address(binder.storage.of(each)) for each in targets], np.int64)),
            ]  # fmt: skip
            mean = call_functions().mean_points
            combined.append(
                cmd.Kernel(mean, binder.control(np.array(args, np.int64)), 1, cmd.Category.CALL, "receivers")
            )
        return [*found, *combined]

    for field, taps in sensors.taps.items():
        if taps.reach:
            program.refresh(field, taps.reach)
    program.call(CompiledCall("receivers", sample, commands), reads=tuple(sensors.taps))
    return registers


def record_taps(program: Program, field: Field, taps: Taps, name: str) -> tuple[Register, ...]:
    """Record in a Program the sampling of a field by its taps; return the registers of the samples.

    Parameters
    ----------
    program
        The Program.
    field
        The field.
    taps
        The taps.
    name
        The first part of the names of the registers.
    """
    return record_sensors(program, Sensors((Recorded(name, (field,)),), {field: taps}), [name])


def _over_ranks(binder: Binder, own: dict[Field, np.ndarray]) -> tuple[dict[Field, np.ndarray], list[cmd.Command]]:
    """Return rows with the samples of all ranks, and the commands that fill them from rows with this rank's."""
    if binder.comm.size == 1:
        return own, []
    points = next(iter(own.values())).size
    together = binder.backend.words(len(own) * points, ranks=True)
    whole = {field: together[k * points : (k + 1) * points] for k, field in enumerate(own)}
    copies = [Copy(_place(binder, own[field]), _place(binder, whole[field]), (points,), 8) for field in own]
    # All ranks but one have the bits of 0.
    return whole, [*copy_commands(copies, binder.backend, "receivers"), cmd.Allreduce(together, "sum")]


def _place(binder: Binder, row: np.ndarray) -> BoxAddress:
    return BoxAddress(binder.control(np.array([binder.control(row)], np.int64)), 0, (8,))
