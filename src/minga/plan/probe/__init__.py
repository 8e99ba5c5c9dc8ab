"""Timing of the model's own step and of messages on the ranks of a run, before it begins."""
