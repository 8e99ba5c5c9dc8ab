"""The commands ``minga lab ...``, and a check of ``minga doctor``."""
