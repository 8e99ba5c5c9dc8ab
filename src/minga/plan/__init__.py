"""Who does the work: the machine, its cores and ranks, and the layout fitted to them."""
