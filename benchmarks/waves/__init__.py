"""Waves beside their peers: speed of the TTI model, and what writing snapshots while it computes is worth."""
