"""Machado, Lorenzon and Navaux: writing the frames of seismic waves while the next ones are computed."""
