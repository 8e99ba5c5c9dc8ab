"""The commands ``minga medium ...``."""
