"""Observers: everything between the steps of a run, one observer a file."""
