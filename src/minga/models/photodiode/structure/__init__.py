"""What a device is: materials, layers, mesh, light, and the numbers that follow at every node."""
