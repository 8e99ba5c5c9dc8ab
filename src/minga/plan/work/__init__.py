"""What a step of a model asks: cells, exchanges, memory, and what cells cost."""
