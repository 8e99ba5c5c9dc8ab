"""Runs in jobs of a batch system, one after another until they are complete."""
