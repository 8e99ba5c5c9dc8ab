"""Photodiodes: minga beside DEVSIM, and its native loop beside iterations that Python drives."""
