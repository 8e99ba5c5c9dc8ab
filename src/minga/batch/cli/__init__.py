"""The command ``minga submit``."""
