"""The command ``minga bcast``."""
