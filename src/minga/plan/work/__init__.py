"""The work of a model's step: cells, exchanges, memory, and the costs of cells."""
