"""The command ``minga matmul``."""
