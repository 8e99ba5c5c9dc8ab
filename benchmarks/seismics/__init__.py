"""Shots, gradients and inversions of waves: minga beside Devito's own examples."""
