"""Shots and gradients of acoustic waves on two axes: minga beside Devito's own example."""
