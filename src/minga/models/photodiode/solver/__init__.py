"""Solvers for potential, electrons and holes: equations, solution methods, and continuation in the voltage."""
