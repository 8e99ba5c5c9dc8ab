"""Which processes: starting ranks and agents on this machine and on others, watching them, and ending them."""
