"""The digest depends on the state alone: not on the cuts, not on their order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minga.output.digest import combine, digest_of_arrays, digest_of_blocks, mix64
from minga.space.box import Box
from minga.space.cuts import blocks, cartesian, slabs
from minga.space.layout import Layout

DTYPES = ("bool", "u1", "i2", "i4", "i8", "u4", "u8", "f4", "f8")


def array(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    if dtype[0] == "f":
        return random.standard_normal(shape).astype(dtype)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def digest_by(layout: Layout, arrays: list[np.ndarray]) -> str:
    """The digest as the ranks of a layout make it up."""
    contributions = []
    for rank in range(layout.ranks):
        mine = [layout.box(b) for b in layout.blocks_of(rank)]
        fields = [(layout.domain, [(box, a[box.slices(layout.domain.lo)]) for box in mine]) for a in arrays]
        contributions.append(digest_of_blocks(fields))
    return combine(reversed(contributions))


def test_mix64_is_the_finaliser_of_splitmix64() -> None:
    # The first outputs of SplitMix64 seeded with 0 (prng.di.unimi.it/splitmix64.c): mix of multiples of PHI.
    phi = 0x9E3779B97F4A7C15
    words = np.array([phi, 2 * phi % 2**64, 3 * phi % 2**64], np.uint64)
    assert [f"{w:x}" for w in mix64(words)] == ["e220a8397b1dcdaf", "6e789e6aa1b965f4", "6c45d188009454f"]


def test_known_digest() -> None:
    """The definition, cell by cell in Python integers."""
    mask, phi = 2**64 - 1, 0x9E3779B97F4A7C15

    def mix(z: int) -> int:
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        return z ^ z >> 31

    values = np.array([[0, 1, 255], [7, 0, 1]], np.uint8)
    salt = mix(1)
    expected = sum(mix((i * phi + v + salt) & mask) for i, v in enumerate(values.ravel().tolist())) & mask
    assert digest_of_arrays([values]) == f"{expected:016x}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts_drop_out(dtype: str) -> None:
    whole = array((37, 130), dtype)
    domain = Box.of(whole.shape)
    expected = digest_of_arrays([whole, whole])
    for layout in (
        slabs(domain, 3),
        slabs(domain, 7, axis=1, granule=1),
        cartesian(domain, (2, 3), granule=1),
        blocks(domain, 4, 3, granule=1),
    ):
        assert digest_by(layout, [whole, whole]) == expected


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 16), st.integers(0, 99))
def test_layouts_drop_out_for_any_shape(shape: list[int], ranks: int, seed: int) -> None:
    whole = array(tuple(shape), "i4", seed)
    layout = blocks(Box.of(shape), ranks, 2, granule=1)
    assert digest_by(layout, [whole]) == digest_of_arrays([whole])


@given(st.integers(0, 5 * 7 - 1), st.sampled_from(DTYPES))
def test_every_cell_counts(cell: int, dtype: str) -> None:
    one = array((5, 7), dtype)
    other = one.copy()
    other.flat[cell] = ~other.flat[cell] if dtype[0] != "f" else np.nextafter(other.flat[cell], 9, dtype=dtype)
    assert digest_of_arrays([one]) != digest_of_arrays([other])


def test_place_and_field_count() -> None:
    one = np.array([[0, 1], [0, 0]], np.uint8)
    two = np.array([[0, 0], [1, 0]], np.uint8)
    assert digest_of_arrays([one]) != digest_of_arrays([two])
    assert digest_of_arrays([one, two]) != digest_of_arrays([two, one])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_all_nans_are_one_and_zeros_are_two(dtype: str) -> None:
    bits = {"f4": ("u4", 0x7FC00001, 0xFFC00000), "f8": ("u8", 0x7FF8000000000001, 0xFFF8000000000000)}[dtype]
    strange = np.array(bits[1:], bits[0]).view(dtype)
    assert digest_of_arrays([strange]) == digest_of_arrays([np.full(2, np.nan, dtype)])
    assert digest_of_arrays([np.array([0.0], dtype)]) != digest_of_arrays([np.array([-0.0], dtype)])


def test_large_fields_are_mixed_in_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = array((50, 60), "f4")
    expected = digest_of_arrays([whole])
    monkeypatch.setattr("minga.output.digest._SLAB", 128)
    assert digest_of_arrays([whole]) == expected
