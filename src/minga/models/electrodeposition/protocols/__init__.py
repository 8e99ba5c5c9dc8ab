"""Programs of currents and voltages that drive a cell: segments, their conversion from a case, and their course."""
