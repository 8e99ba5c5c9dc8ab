"""Milano, Mocskos and Marshall: relaxation on a heterogeneous cluster, and messages hidden behind it."""
