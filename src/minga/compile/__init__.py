"""Kernels to code: the NumPy, LLVM and PTX printers of one graph, and the object cache."""
