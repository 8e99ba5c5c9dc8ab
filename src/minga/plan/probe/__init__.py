"""Timing the model's own step and messages on the ranks there are, before a run."""
