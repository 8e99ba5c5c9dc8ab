"""Organisations of the pointwise scheme on many machines, and an emulator that compares them without the machines."""
