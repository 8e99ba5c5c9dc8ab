"""Commands about cellular automata."""
