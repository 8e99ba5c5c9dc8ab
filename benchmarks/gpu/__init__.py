"""Speed of the engine on a GPU, beside what its memory allows."""
