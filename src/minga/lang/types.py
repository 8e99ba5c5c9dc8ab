"""The nine cell types and their type promotion: NumPy's rules, with weak Python scalars (NEP 50)."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from minga.errors import shown

DType = Literal["bool", "u1", "i2", "i4", "i8", "u4", "u8", "f4", "f8"]

DTYPES: Final[tuple[DType, ...]] = ("bool", "u1", "i2", "i4", "i8", "u4", "u8", "f4", "f8")
_NUMPY: Final[dict[str, DType]] = {np.dtype(name).str.lstrip("<|="): name for name in DTYPES}
BITS: Final[dict[DType, int]] = {
    "bool": 1, "u1": 8, "i2": 16, "i4": 32, "i8": 64, "u4": 32, "u8": 64, "f4": 32, "f8": 64,
}  # fmt: skip


def as_dtype(value: object) -> DType:
    """Return the minga name of a NumPy-compatible dtype; raise ValueError for types that a cell cannot have."""
    try:
        key = np.dtype(value).str.lstrip("<|=")  # type: ignore[call-overload]
    except TypeError as error:
        raise ValueError(f"{shown(value)} is not a type a cell can have; choose one of {', '.join(DTYPES)}") from error
    if key not in _NUMPY:
        raise ValueError(f"{shown(value)} is not a type a cell can have; choose one of {', '.join(DTYPES)}")
    return _NUMPY[key]


def itemsize(dtype: DType) -> int:
    """Return the bytes of one cell (a bool takes a whole byte)."""
    return max(1, BITS[dtype] // 8)


def is_float(dtype: DType) -> bool:
    """Return True for f4 and f8."""
    return dtype[0] == "f"


def is_signed(dtype: DType) -> bool:
    """Return True for signed integers."""
    return dtype[0] == "i"


def is_integer(dtype: DType) -> bool:
    """Return True for signed and unsigned integers; a bool is not an integer here."""
    return dtype[0] in "iu"


def integer_range(dtype: DType) -> tuple[int, int]:
    """Return the smallest and largest value of an integer or bool type."""
    if dtype == "bool":
        return 0, 1
    bits = BITS[dtype]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed(dtype) else (0, (1 << bits) - 1)


def promote(left: DType, right: DType) -> DType:
    """Return NumPy's common type of two strong operands; raise ValueError if it is not one of the nine cell types."""
    return as_dtype(np.result_type(np.dtype(left), np.dtype(right)))


def promote_weak(strong: DType, weak: DType) -> DType:
    """Return the common type of a strong operand and a Python scalar of kind bool, i8 (int) or f8 (float)."""
    if weak == "f8":
        return strong if is_float(strong) else "f8"
    if weak == "i8":
        return "i8" if strong == "bool" else strong
    return strong
