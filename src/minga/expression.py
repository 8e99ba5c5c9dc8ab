"""Expressions that users write in Python's syntax: they are parsed, and never executed by Python."""

from __future__ import annotations

import ast
import warnings


def parse_expression(text: str) -> ast.expr:
    """Return the syntax tree of an expression, without Python's warnings about style (such as for ``1or x``).

    Raises
    ------
    SyntaxError, ValueError, RecursionError, MemoryError
        As `ast.parse` does.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        return ast.parse(text, mode="eval").body
