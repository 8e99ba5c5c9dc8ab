"""Methods made from kernels: relaxation, conjugate gradients and multigrid."""
