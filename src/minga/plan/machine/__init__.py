"""Machines as described by files: nodes, speeds, links; reading, writing and measuring of machine files."""
