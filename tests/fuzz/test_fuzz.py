"""Parsers on broken input: seeds that were changed at random give a result or an error in words (`make fuzz`: more)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .targets import TARGETS

_PIECES = (
    b"",
    b"0",
    b"9" * 12,
    b"-1",
    b",",
    b"/",
    b"\n",
    b"\xff",
    b"..",
    b"$",
    b"(",
    b'"',
    b"1e400",
    b"nan",
    b"R500",
    b"{",
)


@st.composite
def changed(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """A seed with some places replaced, cut out or repeated."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        stop = draw(st.integers(start, min(len(data), start + 12)))
        piece = draw(st.one_of(st.sampled_from(_PIECES), st.just(data[start:stop] * 2), st.binary(max_size=4)))
        data = data[:start] + piece + data[stop:]
    return data


@pytest.mark.few(2)
@pytest.mark.parametrize("name", TARGETS)
def test_broken_input_is_answered_in_words(name: str) -> None:
    target, seeds = TARGETS[name]

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(changed(seeds))
    def check(data: bytes) -> None:
        target(data)

    for seed in seeds:
        target(seed)
    check()
