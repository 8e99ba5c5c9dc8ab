"""Structure of a device: materials, layers, mesh, light, and the quantities derived from them at every node."""
