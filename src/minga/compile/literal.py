"""Types of values in memory and literals, as LLVM spells them."""

from __future__ import annotations

import struct

from minga.compile.operations import REGISTER
from minga.lang.types import DType, is_float

__all__ = ["constant", "memory_type"]


def memory_type(dtype: DType) -> str:
    """Return the LLVM type of a value in memory."""
    return "i8" if dtype == "bool" else REGISTER[dtype]


def constant(value: object, dtype: DType) -> str:
    """Return a literal; floats as the hexadecimal digits of the double of that value, which LLVM accepts for f4 too."""
    if dtype == "bool":
        return "true" if value else "false"
    if is_float(dtype):
        return f"0x{struct.unpack('<Q', struct.pack('<d', float(value)))[0]:016X}"  # type: ignore[arg-type]
    return str(int(value))  # type: ignore[call-overload]
