"""Milano, Mocskos and Marshall: relaxation on a heterogeneous cluster, and how messages are hidden behind it."""
