"""Sums of products with known weights."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from minga.lang.expr import Node

__all__ = ["signed_sum"]


def signed_sum(terms: Sequence[tuple[Fraction, Node]]) -> Node:
    """Return the sum of weights times values, in this order, each weight rounded once.

    Weights of 1 cost no multiplication and signs no operation, where there is a term that may be subtracted from.
    """
    products = [(weight < 0, value if abs(weight) == 1 else value * float(abs(weight))) for weight, value in terms]
    if len(products) > 1 and products[0][0] and not products[1][0]:
        products[:2] = products[1::-1]
    negative, total = products[0]
    total = -total if negative else total
    for negative, product in products[1:]:
        total = total - product if negative else total + product
    return total
