"""Measured networks and machines as pages and pictures."""
