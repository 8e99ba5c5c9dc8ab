"""Products of matrices on unequal machines, beside others that make them."""
