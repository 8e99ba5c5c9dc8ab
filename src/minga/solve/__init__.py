"""Solvers recorded into Programs: relaxation, Krylov methods, multigrid, lines, coupled unknowns, integrators.

No Python runs between the operations of an iteration, every rank does the same number of them, and results have the
same bits on any layout. Names are imported when they are first used::

    solution = mg.solve.conjugate_gradients(program, operator, x, b, preconditioner=levels)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from minga.solve.balances import Balances
    from minga.solve.biconjugate import Vectors, bicgstab, bicgstab_vectors
    from minga.solve.block_tridiagonal import BlockLines
    from minga.solve.elliptic import Elliptic
    from minga.solve.fft.convolve import Convolution
    from minga.solve.fft.poisson import Poisson
    from minga.solve.fft.transform import FFT, Spectrum
    from minga.solve.five_point import Direct, FivePoint
    from minga.solve.integrators import INTEGRATORS, Integrator, Recorded, integrator
    from minga.solve.iterative import Iterative
    from minga.solve.krylov import Operator, Preconditioner, Solution, Workspace, conjugate_gradients, workspace
    from minga.solve.laplacian import Laplacian
    from minga.solve.lines import EllipticLines, Lines
    from minga.solve.multigrid import Multigrid
    from minga.solve.multisecant import Multisecant
    from minga.solve.rates import Evolution, Rates
    from minga.solve.relaxation import best_weight, jacobi, lexicographic, red_black
    from minga.solve.row_blocks import planes
    from minga.solve.sparse_factors import sparse
    from minga.solve.steady_state import steady
    from minga.solve.tridiagonal import solve_tridiagonal

__all__ = [
    "FFT",
    "INTEGRATORS",
    "Balances",
    "BlockLines",
    "Convolution",
    "Direct",
    "Elliptic",
    "EllipticLines",
    "Evolution",
    "FivePoint",
    "Integrator",
    "Iterative",
    "Laplacian",
    "Lines",
    "Multigrid",
    "Multisecant",
    "Operator",
    "Poisson",
    "Preconditioner",
    "Rates",
    "Recorded",
    "Solution",
    "Spectrum",
    "Vectors",
    "Workspace",
    "best_weight",
    "bicgstab",
    "bicgstab_vectors",
    "conjugate_gradients",
    "integrator",
    "jacobi",
    "lexicographic",
    "planes",
    "red_black",
    "solve_tridiagonal",
    "sparse",
    "steady",
    "workspace",
]

__getattr__, __dir__ = attach(__name__, __file__)
