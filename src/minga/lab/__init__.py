"""A heterogeneous cluster in one Linux box: nodes with speed, memory and links of their own."""
