"""Machines as files describe them: nodes, speeds, links; how files are written by hand, read and measured."""
