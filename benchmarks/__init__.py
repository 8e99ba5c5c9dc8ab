"""Measurements of minga beside what a C compiler makes of the same loops: `python -m benchmarks`."""
