"""The report of a run: one self-contained HTML file, made of nothing but the files the run left."""

from minga.view.report.page import write_report

__all__ = ["write_report"]
