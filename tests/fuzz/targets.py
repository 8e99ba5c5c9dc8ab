"""Everything that reads what a person wrote, as functions of bytes: each gives a result or a MingaError, soon."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from minga.case.boundary import parse_boundary
from minga.cli.case import Source, read_case
from minga.errors import MingaError
from minga.lang.rule import rule
from minga.models.automaton.model import automaton
from minga.network.broadcast.manifest import Manifest

Target = Callable[[bytes], None]
SHAPE = (12, 20)


def accepts(function: Callable[[], object]) -> None:
    """Call it; what a person could have got wrong is a MingaError, and that is all right."""
    try:
        function()
    except MingaError as error:
        if not str(error).strip():
            raise AssertionError("an error without a word") from error


def a_rule(ndim: int) -> Target:
    """A rule's text on a small grid, traced."""

    def target(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        if ".py" in text or ".rule" in text.lower():
            return  # files are targets of their own
        accepts(lambda: automaton(text, SHAPE[:1] * ndim, init={"fill": 0}))

    return target


def a_file(suffix: str, text: Callable[[Path], object]) -> Target:
    """A file with this ending, in a directory of its own."""

    def target(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"input{suffix}"
            path.write_bytes(data)
            accepts(lambda: text(path))

    return target


@rule(states=256)
def still(cell, near):  # type: ignore[no-untyped-def]
    return cell


def a_pattern(path: Path) -> object:
    """The cells of a pattern file on a small grid, for a rule of many states, so that few are refused early."""
    model = automaton(still, SHAPE, init=path.name, directory=path.parent)
    field = model.fields[0]
    value = model.initial[field] if field in model.initial else next(iter(model.initial.values()))
    return value(field.bounds) if callable(value) else np.asarray(value)


def a_case(data: bytes) -> None:
    """The text of a TOML case."""
    text = data.decode("utf-8", "replace")
    if ".py" in text:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input.toml"
        path.write_text(text, encoding="utf-8")
        accepts(lambda: read_case(Source("input", path, text)))


def a_stop(data: bytes) -> None:
    """A condition to stop at, in a case that is otherwise right."""
    text = data.decode("utf-8", "replace").replace("\\", "/").replace('"', "'")
    text = "".join(c for c in text if c.isprintable())
    a_case(
        f'model = "automaton"\ngrid.shape = [8, 8]\nrun.steps = 1\n[automaton]\nrule = "B3/S23"\n'
        f'init = {{ soup = 0.5 }}\n[stop]\nwhen = "{text}"\n'.encode()
    )


def a_boundary(data: bytes) -> None:
    """Boundary words as JSON writes them."""
    import json

    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        value = data.decode("utf-8", "replace")
    accepts(lambda: parse_boundary(value, 2))


def _table(path: Path) -> object:
    return automaton(path.name, SHAPE, init={"fill": 0}, directory=path.parent)


_CASE = b"""model = "automaton"
[grid]
shape = [8, 8]
boundary = ["fixed", "reflect"]
[automaton]
rule = "B3/S23"
init = { soup = 0.5, seed = 3 }
[run]
steps = 10
[output]
every = 5
"""
_TABLE = b"""@RULE Two
@TABLE
n_states:3
neighborhood:vonNeumann
symmetries:rotate4
var a={0,1,2}
var b={a}
0,1,a,b,0,1
1,a,b,0,0,2
2,0,0,0,0,0
"""
_TREE = b"""@RULE Three
@TREE
num_states=2
num_neighbors=4
num_nodes=6
1 0 1
2 0 0
3 1 1
4 2 2
5 3 3
1 1 0
"""
_NPY = (
    b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }" + b" " * 57 + b"\n\x01\0\0\1"
)
_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000002000000020800000000"
    "57dd52f80000000e49444154789c6360606080620000080100010cd6a3c60000000049454e44ae426082"
)

TARGETS: Mapping[str, tuple[Target, tuple[bytes, ...]]] = {
    "rule in two dimensions": (
        a_rule(2),
        (b"B3/S23", b"23/3/8", b"B2-a/S12", b"B2cekin/S12H", b"/2/3", b"R5,C0,M1,S34..58,B34..45,NM", b"B36/S23V",
         b"M0,8,4,3,2,5,9,7,1,6,10,11,12,13,14,15", b"R500,C255,M1,S0..999999,B1..2,NN", b"B3/S23R"),
    ),
    "rule in one dimension": (a_rule(1), (b"W30", b"W110R", b"T777,K3", b"B1/S2", b"W99999999999", b"K3R1W7")),
    "rule in three dimensions": (a_rule(3), (b"B5/S4,5", b"B4/S4,10V", b"B26,/S0")),
    "rle": (
        a_file(".rle", a_pattern),
        (b"#C glider\nx = 3, y = 3, rule = B3/S23:T12,20\nbo$2bo$3o!", b"x=2,y=1\npA.$yO!", b"99999999999o!",
         b"#CXRLE Pos=-3,5 Gen=7\nx = 999999999, y = 999999999\no!"),
    ),
    "plain text": (a_file(".cells", a_pattern), (b"!Name: glider\n.O\n..O\nOOO\n", b"*" * 30)),
    "life 1.06": (
        a_file(".lif", a_pattern), (b"#Life 1.06\n0 -1\n1 0\n-1 1\n0 1\n1 1\n", b"#Life 1.06\n99999999999 3\n")
    ),
    "npy": (
        a_file(".npy", a_pattern),
        (_NPY,),
    ),
    "png": (a_file(".png", a_pattern), (_PNG,)),
    "rule table": (a_file(".rule", _table), (_TABLE, _TREE)),
    "case": (a_case, (_CASE, _CASE + b"[stop]\nfixed_point = true\n")),
    "stop": (
        a_stop,
        (b"population < 10", b"population > 5 and residual == 0", b"(" * 50, b"histogram[1] >= 3 or not min < 2"),
    ),
    "boundary": (
        a_boundary,
        (b'"periodic"', b'["fixed", 1]', b'[["fixed", 1], {"shift": 3}]', b'[["reflect", "fixed"], "periodic"]'),
    ),
    "files of a broadcast": (
        lambda data: accepts(lambda: Manifest.read(data)),
        (b'{"kind": "tree", "entries": [["d", "", 493, 0, ""], ["f", "a", 420, 9, ""], ["l", "b", 0, 0, "a"]]}',
         b'{"kind": "pipe", "entries": [["f", "", 420, null, ""]]}'),
    ),
}  # fmt: skip
"""By name: the function, and inputs to begin with."""
