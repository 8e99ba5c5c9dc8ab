"""Adjoints of Programs: derivatives of a number by the values of whole fields, through many steps."""
