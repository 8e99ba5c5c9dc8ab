"""What a cell does: expressions, graphs, kernels and rules."""
