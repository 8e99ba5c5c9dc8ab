"""Organisations of the pointwise scheme on a cluster in a box, beside what the emulator says of them."""
