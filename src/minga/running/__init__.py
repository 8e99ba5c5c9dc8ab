"""One run from its first step to what it leaves: the loop, its observers, and the ways in."""
