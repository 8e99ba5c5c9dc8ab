"""Planning: the machine, its cores and ranks, and layouts fitted to them."""
