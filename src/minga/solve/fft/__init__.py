"""Fourier, sine and cosine transforms over all axes of a grid, recorded in Programs, and solvers made from them."""
