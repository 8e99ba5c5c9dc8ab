"""Printista and Saez: the mapping of the blocks of a cellular automaton onto the cores of a cluster."""
