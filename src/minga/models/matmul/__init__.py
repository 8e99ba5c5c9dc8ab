"""Matrix products on machines of unequal speed: rows in proportion to BLAS speed, panels of B sent to all in turn."""

from minga.models.matmul.plan import Plan, make_plan
from minga.models.matmul.product import matmul

__all__ = ["Plan", "make_plan", "matmul"]
