"""Products of matrices on machines of unequal speed: rows by the speed of each BLAS, panels of B to all in turn."""

from minga.models.matmul.plan import Plan, make_plan
from minga.models.matmul.product import matmul

__all__ = ["Plan", "make_plan", "matmul"]
