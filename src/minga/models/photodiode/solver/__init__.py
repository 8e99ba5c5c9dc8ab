"""Electrons, holes and potential: the equations, what solves them, and the way from one voltage to the next."""
