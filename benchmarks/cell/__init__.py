"""Electrodeposition: one scheme beside the other, and beside FiPy."""
