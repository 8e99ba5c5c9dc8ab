"""Expressions that users write: Python's warnings about their style are not for them."""

from __future__ import annotations

import ast
import warnings

import pytest

from minga.expression import parse_expression


def test_an_expression_is_a_tree() -> None:
    assert ast.dump(parse_expression("a + 1")) == ast.dump(ast.parse("a + 1", mode="eval").body)


@pytest.mark.parametrize("text", ["1or 2", "'\\d'", "1 is 1"])
def test_no_warning_of_python_reaches_the_user(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(parse_expression(text), ast.expr)
