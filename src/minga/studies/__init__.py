"""Published measurements, repeated on this machine: what the commands ``minga bench ...`` do."""
