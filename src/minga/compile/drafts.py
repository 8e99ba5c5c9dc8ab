"""Drafts of kernels: machine code that is made quickly, runs slowly, and is used until processes have made better code.

Most of a compilation is LLVM's search for faster code. Without it, a kernel is compiled in a tenth of the time. The IR
is the same, and its operations have one meaning only, so both have the same bits, and one may take the place of the
other between any two calls.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from minga.compile.cache import default_cache
from minga.compile.jit import draft_code
from minga.compile.llvm import Compiled, compile_kernel, compile_text
from minga.compile.target import host_target
from minga.compile.together import Together, begin_together
from minga.lang.graph import KernelGraph

__all__ = ["Drafts", "Place"]

_WORTH: Final = 100_000
"""Characters of IR from which drafts pay: compiling these takes about as long as starting a process."""
_PERIOD: Final = 0.1
"""Seconds between two looks for finished kernels."""


class Place(Protocol):
    """A place that calls a kernel's code."""

    function: int

    def use(self, function: int) -> None:
        """Call the code at another address from now on."""


@dataclass(slots=True, eq=False)
class _Draft:
    """A kernel that is still to be compiled, its draft, and the places that call it."""

    graph: KernelGraph
    reductions: bool
    code: Compiled
    places: list[Place] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Drafts:
    """The drafts that an engine uses at present.

    Attributes
    ----------
    use
        Told the code of a kernel that is to be used from now on: first a draft, then what replaces it.
    lock
        Held while a draft is replaced; who holds it may copy addresses.
    """

    use: Callable[[Compiled], None]
    lock: threading.RLock = field(default_factory=threading.RLock)
    _waiting: dict[str, _Draft] = field(default_factory=dict)

    def begin(self, kernels: Iterable[tuple[KernelGraph, bool]], workers: int) -> None:
        """Use drafts of the kernels that the cache lacks, if these are many, and let processes compile the kernels."""
        together = begin_together(kernels, workers, least=1)
        if together is None or sum(len(job.ir) for job in together.jobs) < _WORTH:
            return
        target = host_target()
        for job in together.jobs:
            graph, reductions = together.wanted[job.key]
            code = compile_text(graph, target, reductions, job.key, draft_code(job.ir, target))
            self._waiting[job.key] = _Draft(graph, reductions, code)
            self.use(code)
        together.start(min(max(1, workers - 1), len(together.jobs)))
        threading.Thread(target=self._replace_all, args=(together,), name="minga-drafts", daemon=True).start()

    def add(self, code: Compiled, place: Place) -> None:
        """Note a place that calls a kernel, in case its code is a draft."""
        with self.lock:
            draft = self._waiting.get(code.key)
            if draft is not None and draft.code is code:
                draft.places.append(place)

    def finished(self) -> bool:
        """Return True if no draft is used any longer."""
        return not self._waiting

    def _replace_all(self, together: Together) -> None:
        """Replace drafts as soon as they are compiled; those whose process has failed are compiled here."""
        keys = [job.key for job in together.jobs]
        while keys:
            over = together.over()
            cache = default_cache()
            found = [key for key in keys if over or (cache is not None and key in cache)]
            for key in found:
                self._replace(key)
            keys = [key for key in keys if key in self._waiting]
            time.sleep(_PERIOD if keys else 0.0)
        for process in together.processes:
            process.wait()

    def _replace(self, key: str) -> None:
        draft = self._waiting[key]
        code = compile_kernel(draft.graph, reductions=draft.reductions)
        with self.lock:
            for place in draft.places:
                if place.function == draft.code.address:
                    place.use(code.address)
            self.use(code)
            del self._waiting[key]
