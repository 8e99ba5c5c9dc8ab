"""Transients: voltage and light as functions of time, an external circuit, and steps of TR-BDF2."""
