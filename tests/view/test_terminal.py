"""Pictures in terminals: what is sent is decoded again, and each terminal is sent what it understands."""

from __future__ import annotations

import base64
import io
import os
import pty
import re
import threading
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from minga.view.sixel import sixels
from minga.view.terminal import Room, encode, find_protocol, room_of, understood


def decoded(text: str) -> np.ndarray:
    """The image that sixels draw, as percentages of red, green and blue; -1 where nothing was drawn."""
    match = re.fullmatch(r'\x1bP0;1;0q"1;1;(\d+);(\d+)(.*)\x1b\\', text, flags=re.DOTALL)
    assert match
    image = np.full((-(-int(match[2]) // 6) * 6, int(match[1]), 3), -1)
    colours: dict[int, tuple[int, ...]] = {}
    row = column = colour = 0
    for token in re.finditer(r"#(\d+)(?:;2;(\d+);(\d+);(\d+))?|!(\d+)([?-~])|([?-~])|(\$)|(-)", match[3]):
        if token[1]:
            colour = int(token[1])
            if token[2]:
                colours[colour] = tuple(map(int, token.group(2, 3, 4)))
        elif token[8]:
            column = 0
        elif token[9]:
            row, column = row + 6, 0
        else:
            length, bits = int(token[5] or 1), ord(token[6] or token[7]) - 63
            for bit in range(6):
                if bits >> bit & 1:
                    image[row + bit, column : column + length] = colours[colour]
            column += length
    return image[: int(match[2])]


@pytest.mark.parametrize("shape", [(1, 1), (6, 10), (7, 9), (25, 40)])
@pytest.mark.parametrize("colours", [1, 2, 17, 256])
def test_sixels_draw_the_image(shape: tuple[int, int], colours: int) -> None:
    rng = np.random.default_rng(colours)
    palette = rng.integers(0, 256, (colours, 3)).astype(np.uint8)
    numbers = np.sort(rng.integers(0, colours, shape), axis=1).astype(np.uint8)
    assert (decoded(sixels(numbers, palette)) == np.round(100 * palette[numbers].astype(int) / 255)).all()


def image(shape: tuple[int, int] = (40, 50)) -> PIL.Image.Image:
    return PIL.Image.fromarray(np.random.default_rng(1).integers(0, 256, (*shape, 3)).astype(np.uint8))


def test_kitty_gets_a_png_in_pieces() -> None:
    shown = image()
    pieces = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", encode(shown, "kitty"))
    assert pieces[0][0].startswith("a=T,f=100,")
    assert [p[0].rpartition("m=")[2] for p in pieces] == ["1"] * (len(pieces) - 1) + ["0"]
    assert all(len(data) <= 4096 for _, data in pieces)
    found = PIL.Image.open(io.BytesIO(base64.b64decode("".join(data for _, data in pieces))))
    assert (np.asarray(found) == np.asarray(shown)).all()


@pytest.mark.parametrize("height", [4, 5])
def test_half_blocks_show_two_rows_in_a_line(height: int) -> None:
    shown = np.asarray(image((height, 3)))
    lines = encode(PIL.Image.fromarray(shown), "blocks").splitlines()
    assert len(lines) == 3 if height == 5 else 2
    for number, line in enumerate(lines):
        cells = re.findall(r"\x1b\[38;2;(\d+);(\d+);(\d+);48;2;(\d+);(\d+);(\d+)m\u2580", line)
        assert len(cells) == 3
        for column, cell in enumerate(cells):
            below = min(2 * number + 1, height - 1)
            assert [int(c) for c in cell] == [*shown[2 * number, column], *shown[below, column]]
        assert line.endswith("\x1b[0m")
    assert "38;5;" in encode(PIL.Image.fromarray(shown), "blocks", true_colour=False)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "kitty"),
        ({"TERM": "foot"}, "sixel"),
        ({"TERM": "screen-256color", "KITTY_WINDOW_ID": "1"}, "blocks"),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/tmux"}, "blocks"),
        ({"TERM": "xterm-256color"}, "blocks"),
        ({"TERM": "dumb"}, "none"),
        ({}, "none"),
        ({"TERM": "xterm-kitty", "NO_COLOR": "1"}, "none"),
    ],
)
def test_the_environment_tells(environment: dict[str, str], expected: str) -> None:
    assert find_protocol(Terminal(), io.StringIO(), environment) == expected
    assert find_protocol(io.StringIO(), io.StringIO(), environment) == "none"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("\x1b_Gi=31;OK\x1b\\\x1b[?62;c", "kitty"),
        ("\x1b[?62;4;6c", "sixel"),
        ("\x1b[?64;14;40c", "blocks"),
        ("\x1b_Gi=31;ENOTSUPPORTED\x1b\\\x1b[?62;22c", "blocks"),
        ("", "blocks"),
        ("4c", "blocks"),
    ],
)
def test_answers_of_terminals(answer: str, expected: str) -> None:
    assert understood(answer) == expected


@pytest.mark.parametrize(("answer", "expected"), [(b"\x1b[?62;4c", "sixel"), (b"", "blocks")])
def test_a_terminal_is_asked(answer: bytes, expected: str) -> None:
    """A pseudo-terminal that answers, and one that never does: the answer is waited for, but not long."""
    outer, inner = pty.openpty()
    asked = threading.Event()

    def play() -> None:
        os.read(outer, 100)
        asked.set()
        os.write(outer, answer)

    player = threading.Thread(target=play)
    player.start()
    with open(inner, "r+b", buffering=0) as raw, io.TextIOWrapper(raw, write_through=True) as stream:
        assert find_protocol(stream, stream, {"TERM": "xterm-256color"}) == expected
        room = room_of(stream)
    player.join()
    os.close(outer)
    assert asked.is_set()
    assert room == Room(80, 21, 640, 336)


def test_the_room_of_what_is_no_terminal(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as stream:
        assert room_of(stream).columns == 80
