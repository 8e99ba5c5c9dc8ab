"""Checks, before anything is started, that this machine has the devices on which a case is to run."""

from __future__ import annotations

from minga.errors import CaseError, MingaError

__all__ = ["check_device", "ranks_by_device"]


def check_device(device: str, ranks: int) -> None:
    """Raise CaseError if this machine has fewer GPUs than the ranks need."""
    if device == "cpu":
        return
    devices = _devices()
    if ranks > devices and device == "gpu":
        raise CaseError(
            f"{ranks} ranks, but this machine has {devices} GPU{'s' if devices != 1 else ''}",
            key="run.device",
            remedy='start a rank for each GPU, or let ranks share one: run.device = "gpu-shared"',
        )


def ranks_by_device(device: str) -> int | None:
    """Return the default number of ranks of a run on GPUs, one for each GPU; None for a run on processors."""
    if device == "cpu":
        return None
    return _devices() if device == "gpu" else 1


def _devices() -> int:
    from minga.engine.cupy_device import device_count

    try:
        return device_count()
    except MingaError as error:
        raise CaseError(error.message, key="run.device", remedy=error.remedy) from error
