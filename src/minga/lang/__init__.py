"""The kernel language, in which users describe what a cell does: expressions, graphs, kernels and rules."""
