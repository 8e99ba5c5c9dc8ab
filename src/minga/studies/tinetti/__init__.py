"""Tinetti: characterisation of local networks, broadcasts over them, and matrix products on unequal machines."""
