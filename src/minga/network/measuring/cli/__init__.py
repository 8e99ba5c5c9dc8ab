"""The command ``minga measure``."""
