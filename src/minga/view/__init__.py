"""What people look at: progress lines, plots and reports."""
