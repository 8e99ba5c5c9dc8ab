"""Objects as notebooks show them: well-formed, escaped, and without anything to load."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.markup import described
from minga.plan.plan import Choice, Plan, Prediction

GRID = mg.Grid((8, 6), spacing=(0.5, [1.0, 2.0, 1.0, 1.0, 1.0, 1.0]), origin=(1.0, 0.0), units=("m", "1"))
EVIL = "<script>alert('&')</script>"


@mg.kernel
def raised(u: Any, new: Any, *, by: Any) -> None:
    new[0, 0] = u[0, 0] + mg.where(by < 1.0, by, 1.0)


def model_of(name: str = "raised") -> mg.Model:
    """A model whose texts need escapes."""
    u = mg.Field("u", GRID, slots=2, unit="K", description=f"warmth of {EVIL}")
    step = mg.Program(EVIL)
    step.apply(raised, u, u.next, by=0.5)
    step.rotate(u)
    return mg.Model(name, GRID, (u,), step, parameters={"by": 0.5, "said": EVIL}, notes=(("note", EVIL),))


def plan_of() -> Plan:
    zero = np.zeros(1)
    said = Prediction(zero + 1.0, zero, zero, np.zeros(1, np.int64))
    choices = (Choice("layout", "slabs", "single", 0.5, EVIL), Choice("overlap", "yes", "yes", 0.0, ""))
    layout = model_of().layouts("single", 1)[GRID]
    return Plan(layout, "single", "sequential", 1, True, said, choices, left_out=(("old", EVIL),), notes=(EVIL,))


def result_of() -> mg.Result:
    model = mg.pde("laplace(u)", mg.Grid((8,)), initial=1.0, integrator="euler", dt=0.1)
    with mg.Engine(model.layouts("single", 1)) as engine:
        return mg.drive(model, engine, 3)


SHOWN: dict[str, tuple[Any, tuple[str, ...]]] = {
    "grid": (GRID, ("Grid of 48 cells", "1 to 2", "5", "m")),
    "kernel": (raised, ("Kernel raised", "u, new", "by", "new[0, 0] = u[0, 0] + mg.where(by < 1.0, by, 1.0)")),
    "program": (model_of().step, (f"Program {EVIL!r}", "2 operations", "rotate u")),
    "model": (model_of(), ("Model 'raised'", "u", "f8", "8 x 6", "K", "0.5", EVIL, "one step")),
    "plan": (plan_of(), ("Plan: single", "slabs", "saves 500 ms a step", EVIL, "without old")),
    "result": (result_of(), ("all 3 steps done", "0.3", "largest_u")),
}


@pytest.mark.parametrize("name", SHOWN)
def test_objects_are_well_formed_html(name: str) -> None:
    """Texts arrive as they were written, and the page loads and runs nothing."""
    item, expected = SHOWN[name]
    html = item._repr_html_()
    tree = ElementTree.fromstring(html)
    text = "\n".join(tree.itertext())
    assert [words for words in expected if words not in text] == []
    assert {element.tag for element in tree.iter()} <= {
        "div", "strong", "table", "tr", "th", "td", "details", "summary", "pre",
    }  # fmt: skip
    assert {key for element in tree.iter() for key in element.attrib} <= {"class", "style", "scope"}
    assert "url(" not in html
    assert len(html) < 8000


@pytest.mark.parametrize("name", SHOWN)
def test_colours_are_those_of_the_page(name: str) -> None:
    """Text and background are inherited, so that they are legible in a light and in a dark notebook."""
    html = SHOWN[name][0]._repr_html_()
    said = re.findall(r"(?:^|[;\" ])(color|background(?:-color)?): *([^;\"]+)", html)
    assert set(said) <= {("color", "inherit"), ("background", "none")}


def test_values_are_cut_and_empty_ones_left_out() -> None:
    html = described({"array": "1 " * 4000, "nothing": "", "none": None, "zero": 0})
    rows = [[cell.text for cell in row] for row in ElementTree.fromstring(html)]
    assert [row[0] for row in rows] == ["array", "zero"]
    assert rows[1][1] == "0"
    assert rows[0][1] is not None
    assert len(rows[0][1]) < 500
    assert described({}) == ""


def test_a_result_says_what_people_ask() -> None:
    lines = repr(result_of()).splitlines()
    assert lines[:4] == ["Result", "  ended: all 3 steps done", "  steps: 3", "  time: 0.3"]


def test_a_kernel_without_source_is_shown() -> None:
    names: dict[str, Any] = {}
    exec("def made(u, new):\n    new[0] = u[0]", names)
    assert "Kernel made" in mg.kernel(names["made"])._repr_html_()
