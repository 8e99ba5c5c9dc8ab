"""The characterisation of a network beside NetPIPE, the Intel MPI Benchmarks and PVM, on one lab, in turns."""
