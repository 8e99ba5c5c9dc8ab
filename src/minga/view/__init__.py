"""Presentation: progress lines, plots and reports."""
