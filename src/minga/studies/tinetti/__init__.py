"""Tinetti: local networks characterised, broadcasts over them, and products of matrices on unequal machines."""
