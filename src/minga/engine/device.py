"""Interface between the engine and a GPU: shared memory, kernels on one stream, and concurrent copies."""

from __future__ import annotations

import ctypes
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from minga.engine.copy_out import Pending
from minga.errors import LayoutError
from minga.lang.graph import KernelGraph

if TYPE_CHECKING:
    from minga.compile.ptx_choose import Schedule
    from minga.engine.comm import Comm

__all__ = ["HELPERS", "Device", "DriverFunctions", "Helper", "Size", "dealt", "mpi_takes_device_memory", "open_device"]

Size = tuple[int, int, int]
"""Number of blocks in a launch, or of threads in a block, along x, y and z."""
Helper = Literal["copy_boxes", "combine", "arg_candidates", "finish_reductions", "rotate"]
HELPERS: tuple[Helper, ...] = ("copy_boxes", "combine", "arg_candidates", "finish_reductions", "rotate")
"""Names of the engine's own kernels; `minga.engine.device_kernels` describes them."""


@dataclass(frozen=True, slots=True)
class DriverFunctions:
    """Addresses of the driver functions that native code calls, and the stream that they work on.

    launch        cuLaunchKernel
    copy          cuMemcpyDtoHAsync
    synchronise   cuStreamSynchronize
    """

    launch: int
    copy: int
    synchronise: int
    stream: int


class Device(Protocol):
    """One GPU, used by one thread. Launches run later, in order; the host waits in `synchronise` and `fetch`.

    Memory lives as long as an array refers to it. Methods raise RunError when the driver reports an error, which an
    earlier command may have caused.
    """

    name: str
    architecture: str
    """NVIDIA's name of the architecture, for example ``sm_90``."""
    worker: int
    """Address of the worker's words (see compile/abi.py), shared by all launches."""
    schedule: Schedule
    """Order in which traced kernels visit their cells: ``"auto"``, except when schedules are compared."""

    @property
    def memory(self) -> tuple[int, int]:
        """Free bytes (negative if more was requested than exists) and total bytes."""

    def shared(self, size: int) -> np.ndarray:
        """Allocate zeroed memory at an address valid on both sides; Python waits before it accesses the memory."""

    def pinned(self, size: int) -> np.ndarray:
        """Allocate zeroed host memory that the device reads and writes in place."""

    def message(self, size: int) -> np.ndarray:
        """Allocate a buffer for kernels and MPI: pinned memory, or device memory if MPI supports it."""

    def owns(self, address: int) -> bool:
        """Return True if kernels may use an address."""

    def load(self, graph: KernelGraph, reductions: bool) -> int:
        """Load a traced kernel for launching. Raise KernelError if a GPU cannot run it."""

    def helper(self, name: Helper) -> int:
        """Load one of the engine's own kernels."""

    def launch(self, function: int, grid: Size, block: Size, args: int) -> None:
        """Launch a kernel after all earlier launches; `args` is the address of its argument words."""

    def synchronise(self) -> None:
        """Wait until everything launched so far is complete."""

    def fetch(self, source: int, target: int, size: int) -> None:
        """Copy bytes to host memory after all earlier launches, and wait for the copy."""

    def prefetch(self, memory: np.ndarray) -> None:
        """Move shared memory to the device ahead of its use."""

    def copy_staged(self, source: int, target: np.ndarray, keep: object) -> Pending:
        """Copy memory obtained from `staged` to `target`, concurrently with later launches.

        The copy begins when all earlier launches are complete. `target` is memory obtained from `pinned`; `keep` stays
        alive until the copy ends.
        """

    def staged(self, size: int) -> tuple[int, object]:
        """Allocate device memory, or pinned memory if the device is full; return its address and its owning object."""

    def functions(self) -> DriverFunctions:
        """Return the driver functions that native code calls."""

    def error(self, code: int) -> str:
        """Return the description of a driver result code."""

    def close(self) -> None:
        """Release streams and kernels; arrays stay readable."""


def open_device(wish: str, comm: Comm) -> Device | None:
    """Return the device of this rank: None for "cpu", a GPU for "gpu" or "gpu-shared". Collective.

    Each rank of a machine takes the next of the GPUs visible to it: batch systems show a rank either all GPUs of the
    machine or only its own. Raise LayoutError on every rank if one sees no GPU, or if ranks would share one although
    "gpu-shared" was not requested.
    """
    if wish == "cpu":
        return None
    if wish not in ("gpu", "gpu-shared"):
        raise LayoutError(f"device is {wish!r}", remedy='give "cpu", "gpu" or "gpu-shared"')
    from minga.engine.comm import MPIComm
    from minga.engine.cupy_device import CupyDevice, visible_devices

    found: tuple[str, ...] = ()
    failure: LayoutError | None = None
    try:
        found = visible_devices()
    except LayoutError as error:
        failure = error
    everywhere: list[tuple[int, tuple[str, ...], LayoutError | None]] = comm.bcast(
        comm.gather((comm.node, found, failure))
    )
    failure = next((error for _, _, error in everywhere if error is not None), None)
    if failure is not None:
        raise failure
    nodes = [node for node, _, _ in everywhere]
    visible = [devices for _, devices, _ in everywhere]
    for node in sorted(set(nodes)) if wish == "gpu" else ():
        ranks = nodes.count(node)
        devices = len({name for other, names in zip(nodes, visible, strict=True) if other == node for name in names})
        if ranks > devices:
            raise LayoutError(
                f"{ranks} ranks on one machine, where they see {devices} GPU{'s' if devices != 1 else ''}",
                remedy='start a rank for each GPU, or let ranks share one: device = "gpu-shared"',
            )
    aware = isinstance(comm, MPIComm) and comm.size > 1 and mpi_takes_device_memory()
    return CupyDevice(dealt(nodes, visible)[comm.rank], aware=aware)


def dealt(nodes: Sequence[int], visible: Sequence[Sequence[str]]) -> list[int]:
    """Return the device number of each rank, an index into the devices that the rank sees.

    `nodes` holds the node of each rank, `visible` the names of the devices it sees. Ranks choose in rank order, each
    the first of the devices taken by the fewest ranks of its node.
    """
    taken: Counter[tuple[int, str]] = Counter()
    numbers = []
    for node, names in zip(nodes, visible, strict=True):
        number = min(range(len(names)), key=lambda k: (taken[node, names[k]], k))
        taken[node, names[number]] += 1
        numbers.append(number)
    return numbers


def mpi_takes_device_memory() -> bool:
    """Return True if the MPI library can send from GPU memory; MINGA_GPU_AWARE_MPI=on or off overrides its answer.

    The query is MPIX_Query_cuda_support (Open MPI, MPICH); MPICH derivatives report support in environment variables.
    """
    said = os.environ.get("MINGA_GPU_AWARE_MPI", "").lower()
    if said in ("on", "off"):
        return said == "on"
    if "mpi4py.MPI" not in sys.modules:
        return False
    if os.environ.get("MPICH_GPU_SUPPORT_ENABLED") == "1" or os.environ.get("MV2_USE_CUDA") == "1":
        return True
    try:
        query = ctypes.CDLL(sys.modules["mpi4py.MPI"].__file__).MPIX_Query_cuda_support
    except (OSError, AttributeError):
        return False
    query.argtypes, query.restype = [], ctypes.c_int
    return bool(query() == 1)
