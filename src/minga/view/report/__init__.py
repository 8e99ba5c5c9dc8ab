"""The report of a run: one self-contained HTML file, made only from the files that the run left."""

from minga.view.report.page import write_report

__all__ = ["write_report"]
