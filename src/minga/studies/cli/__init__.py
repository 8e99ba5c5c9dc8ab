"""The commands ``minga bench ...``."""
