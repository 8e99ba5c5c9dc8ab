"""Cellular automata beside their peers: Golly, CellPyLib, CAX and NumPy, from the same cells, to equal populations."""
