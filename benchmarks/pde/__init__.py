"""Equations as text: minga beside py-pde, and beside Devito for explicit ones."""
