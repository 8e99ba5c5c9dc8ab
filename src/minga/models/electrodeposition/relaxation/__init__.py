"""The scheme of Milano, Mocskos and Marshall: coupled point relaxation, with vorticity and vector potential."""
