"""Published measurements, repeated on this machine: the experiments behind the commands ``minga bench ...``."""
