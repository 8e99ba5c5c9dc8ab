"""Images in a terminal: by kitty graphics or sixels if it supports them, otherwise as coloured half blocks."""

from __future__ import annotations

import base64
import io
import os
import select
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO

import numpy as np

from minga.view.raster import with_palette
from minga.view.sixel import sixels

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["PROTOCOLS", "Room", "encode", "find_protocol", "room_of"]

PROTOCOLS: Final = ("kitty", "sixel", "blocks", "none")

_CHUNK = 4096
_ANSWER_SECONDS = 0.3
_CELL_PIXELS = (8, 16)
"""Pixels of a character if the terminal does not tell."""
_KITTY_PROGRAMS = ("kitty", "ghostty", "WezTerm")
_KITTY_TERMS = ("xterm-kitty", "xterm-ghostty")
_SIXEL_TERMS = ("foot", "mlterm", "yaft", "contour")
_ASK = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[c"
"""Query of whether kitty's graphics work, then of the terminal's attributes, which every terminal answers."""


@dataclass(frozen=True, slots=True)
class Room:
    """Room in a terminal: columns and rows of characters, and pixels."""

    columns: int
    rows: int
    width: int
    height: int


def find_protocol(stream: TextIO, keyboard: TextIO, environment: Mapping[str, str]) -> str:
    """Return the protocol for images on a stream: one of PROTOCOLS; "none" for no terminal, or one without colours.

    If the environment does not tell, the terminal is queried and has 0.3 s to answer.
    """
    term = environment.get("TERM", "")
    if not stream.isatty() or term in ("", "dumb") or "NO_COLOR" in environment:
        return "none"
    if "TMUX" in environment or term.startswith(("screen", "tmux")):
        return "blocks"  # multiplexers do not pass graphics on
    program = environment.get("TERM_PROGRAM", "")
    if "KITTY_WINDOW_ID" in environment or term in _KITTY_TERMS or program in _KITTY_PROGRAMS:
        return "kitty"
    if term.startswith(_SIXEL_TERMS) or program == "mintty":
        return "sixel"
    return _asked(stream, keyboard) if keyboard.isatty() else "blocks"


def room_of(stream: TextIO) -> Room:
    """Return the size of a terminal, less some lines for reading on; a common size if it is unknown."""
    columns, rows, width, height = 80, 24, 0, 0
    try:
        import fcntl
        import struct
        import termios

        found = struct.unpack("HHHH", fcntl.ioctl(stream.fileno(), termios.TIOCGWINSZ, b"\0" * 8))
        rows, columns, width, height = found[0] or rows, found[1] or columns, found[2], found[3]
    except (ImportError, OSError, ValueError):
        pass
    width, height = width or columns * _CELL_PIXELS[0], height or rows * _CELL_PIXELS[1]
    usable = max(1, rows - 3)
    return Room(columns, usable, width, height * usable // rows)


def encode(image: Image, protocol: str, true_colour: bool = True) -> str:
    """Return text that shows an image, with a line end; ``true_colour``: for half blocks, else 256 colours.

    As half blocks a pixel is half a character high, so the image must be at most as wide as the number of columns.
    """
    if protocol == "kitty":
        return "".join(_kitty(image)) + "\n"
    if protocol == "sixel":
        plain = with_palette(image)
        palette = np.array(plain.getpalette() or [], np.uint8).reshape(-1, 3)
        return sixels(np.asarray(plain), palette) + "\n"
    return "".join(f"{line}\x1b[0m\n" for line in _half_blocks(image, true_colour))


def _kitty(image: Image) -> Iterator[str]:
    """Yield the image as a PNG file in pieces. Source: sw.kovidgoyal.net/kitty/graphics-protocol."""
    stream = io.BytesIO()
    image.save(stream, "PNG")
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    for start in range(0, len(data), _CHUNK):
        control = "a=T,f=100,q=2," if start == 0 else ""
        more = int(start + _CHUNK < len(data))
        yield f"\x1b_G{control}m={more};{data[start : start + _CHUNK]}\x1b\\"


def _half_blocks(image: Image, true_colour: bool) -> Iterator[str]:
    """Yield rows of characters: the upper pixel is the colour of the half block, the lower one its background."""
    pixels = np.asarray(image.convert("RGB"))
    if len(pixels) % 2:
        pixels = np.concatenate([pixels, pixels[-1:]])
    colour = _exact if true_colour else _nearest
    for upper, lower in zip(pixels[::2].tolist(), pixels[1::2].tolist(), strict=True):
        line, before = [], ""
        for above, below in zip(upper, lower, strict=True):
            code = f"\x1b[38;{colour(*above)};48;{colour(*below)}m"
            line.append("\u2580" if code == before else f"{code}\u2580")
            before = code
        yield "".join(line)


def _exact(red: int, green: int, blue: int) -> str:
    return f"2;{red};{green};{blue}"


def _nearest(red: int, green: int, blue: int) -> str:
    """Return the nearest of the 6 x 6 x 6 colours that follow the first 16 of 256."""
    levels = [round(5 * part / 255) for part in (red, green, blue)]
    return f"5;{16 + 36 * levels[0] + 6 * levels[1] + levels[2]}"


def _asked(stream: TextIO, keyboard: TextIO) -> str:
    """Return the protocol found by querying the terminal."""
    try:
        with _raw(keyboard):
            stream.write(_ASK)
            stream.flush()
            answer = _read_answer(keyboard.fileno())
    except (ImportError, OSError, ValueError):
        return "blocks"
    return understood(answer)


def understood(answer: str) -> str:
    """Return the protocol that a terminal's answer allows: kitty answers OK, attribute 4 means sixels."""
    if "\x1b_Gi=31;OK" in answer:
        return "kitty"
    _, found, attributes = answer.partition("\x1b[?")
    return "sixel" if found and "4" in attributes.partition("c")[0].split(";")[1:] else "blocks"


def _read_answer(descriptor: int) -> str:
    """Read the terminal's answer until it has given its attributes, or nothing more comes."""
    answer = ""
    until = time.monotonic() + _ANSWER_SECONDS
    while "c" not in answer.partition("\x1b[?")[2] and (left := until - time.monotonic()) > 0:
        if not select.select([descriptor], [], [], left)[0]:
            break
        answer += os.read(descriptor, 1024).decode("latin-1")
    return answer


@contextmanager
def _raw(keyboard: TextIO) -> Iterator[None]:
    """Let the terminal's answers come through immediately and without being echoed."""
    import termios
    import tty

    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard.fileno(), termios.TCSANOW)
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSANOW, before)
