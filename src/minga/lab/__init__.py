"""A heterogeneous cluster in one Linux machine: nodes with their own speed, memory and links."""
