"""What the engine needs of a GPU: memory that both sides see, kernels on one stream, copies that leave behind them."""

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
"""Blocks of a launch, or threads of a block, along x, y and z."""
Helper = Literal["copy_boxes", "combine", "arg_candidates", "finish_reductions", "rotate"]
HELPERS: tuple[Helper, ...] = ("copy_boxes", "combine", "arg_candidates", "finish_reductions", "rotate")
"""The engine's own kernels; what they do is said in `minga.engine.device_kernels`."""


@dataclass(frozen=True, slots=True)
class DriverFunctions:
    """Addresses of functions of the driver, for native code, and the stream they work on.

    launch        cuLaunchKernel
    copy          cuMemcpyDtoHAsync
    synchronise   cuStreamSynchronize
    """

    launch: int
    copy: int
    synchronise: int
    stream: int


class Device(Protocol):
    """One GPU, used by one thread. What is launched runs later, in order; the host waits in `synchronise` and `fetch`.

    Memory lives as long as an array of it. RunError where the driver reports an error; it may belong to an earlier
    command.
    """

    name: str
    architecture: str
    """As NVIDIA names them: ``sm_90``."""
    worker: int
    """Address of the worker's words (compile/abi.py) that all launches share."""
    schedule: Schedule
    """How traced kernels go through their cells: ``"auto"``, but for comparing schedules."""

    @property
    def memory(self) -> tuple[int, int]:
        """Bytes that are free (less than 0 where more was asked for than there is), and all of them."""

    def shared(self, size: int) -> np.ndarray:
        """Bytes, all 0, at an address that both sides use; Python waits before it touches them."""

    def pinned(self, size: int) -> np.ndarray:
        """Bytes of this machine's memory, all 0, that the device reads and writes in place."""

    def message(self, size: int) -> np.ndarray:
        """Bytes that kernels use and MPI is given: pinned memory, or the device's own where MPI knows about it."""

    def owns(self, address: int) -> bool:
        """Whether kernels may use an address."""

    def load(self, graph: KernelGraph, reductions: bool) -> int:
        """A traced kernel, ready to be launched. KernelError for one that a GPU cannot run."""

    def helper(self, name: Helper) -> int:
        """One of the engine's own kernels."""

    def launch(self, function: int, grid: Size, block: Size, args: int) -> None:
        """Run a kernel after all that was launched before; `args`: address of its argument words."""

    def synchronise(self) -> None:
        """Wait until all that was launched is done."""

    def fetch(self, source: int, target: int, size: int) -> None:
        """Copy bytes to this machine's memory, after all that was launched, and wait for them."""

    def prefetch(self, memory: np.ndarray) -> None:
        """Bring shared memory to the device, ahead of its use."""

    def copy_staged(self, source: int, target: np.ndarray, keep: object) -> Pending:
        """Copy from memory that `staged` gave to `target`, beside what is launched from now on; `keep` lives till then.

        It begins when what was launched before is done. `target` is memory that `pinned` gave.
        """

    def staged(self, size: int) -> tuple[int, object]:
        """Memory of the device, or pinned memory where that is full: its address, and what keeps it."""

    def functions(self) -> DriverFunctions:
        """What native code calls."""

    def error(self, code: int) -> str:
        """What a function of the driver means by a result."""

    def close(self) -> None:
        """Release streams and kernels; arrays stay readable."""


def open_device(wish: str, comm: Comm) -> Device | None:
    """The device for this rank, collectively: None for "cpu", and a GPU for "gpu" or "gpu-shared".

    Each rank of a machine takes the next of its GPUs, of those that it sees: batch systems show a rank all of them, or
    one of its own. LayoutError on every rank where one sees none, or where some would share one without being asked to.
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
                f"{ranks} ranks on one machine, which shows them {devices} GPU{'s' if devices != 1 else ''}",
                remedy='start a rank for each GPU, or let ranks share one: device = "gpu-shared"',
            )
    aware = isinstance(comm, MPIComm) and comm.size > 1 and mpi_takes_device_memory()
    return CupyDevice(dealt(nodes, visible)[comm.rank], aware=aware)


def dealt(nodes: Sequence[int], visible: Sequence[Sequence[str]]) -> list[int]:
    """For each rank, by its node and the names of the devices that it sees: the number of its device among those.

    Ranks choose in their order, each the first of the devices that fewest ranks of its node have.
    """
    taken: Counter[tuple[int, str]] = Counter()
    numbers = []
    for node, names in zip(nodes, visible, strict=True):
        number = min(range(len(names)), key=lambda k: (taken[node, names[k]], k))
        taken[node, names[number]] += 1
        numbers.append(number)
    return numbers


def mpi_takes_device_memory() -> bool:
    """Whether the MPI library says that it sends from a GPU's memory; MINGA_GPU_AWARE_MPI=on or off overrules it.

    It is asked by MPIX_Query_cuda_support (Open MPI, MPICH); MPIs made of MPICH say it in their environment.
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
