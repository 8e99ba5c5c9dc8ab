"""Coupled point relaxation with vorticity and vector potential: the scheme of Milano, Mocskos and Marshall."""
