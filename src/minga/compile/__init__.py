"""Compilation of kernels: the NumPy, LLVM and PTX printers of a graph, and the object cache."""
