"""Tinetti's study of local networks, repeated in clusters in a box."""
