"""Appearance belongs to the presentation of a model; wrong names and the former keywords are refused."""

from __future__ import annotations

from typing import Any

import pytest

import minga as mg

GRID = mg.Grid((6, 4))


def model(**options: object) -> mg.Model:
    u = mg.Field("u", GRID)
    step = mg.Program("step")
    step.call(lambda engine: None, reads=[u], writes=[u])
    return mg.Model("still", GRID, (u,), step, **options)  # type: ignore[arg-type]


def test_styles_reach_the_attributes_of_a_run() -> None:
    look = mg.Presentation({"u": mg.FieldStyle(signed=True, along="y", colours=["#F7F5EF"])})
    attributes = mg.run(model(presentation=look), steps=1).u.attrs
    assert (attributes["colour_scale"], attributes["drawn_along"], attributes["flag_colors"]) == (
        "signed",
        "y",
        "#f7f5ef",
    )
    assert mg.run(model(), steps=1).u.attrs == {"units": "1", "long_name": "u"}


@pytest.mark.parametrize(
    ("look", "message"),
    [
        (mg.Presentation({"v": mg.FieldStyle()}), "not one of its fields"),
        (mg.Presentation({"u": mg.FieldStyle(along="w")}), "axis"),
        (mg.Presentation({"u": mg.FieldStyle(section=("w", 1.0))}), "axis"),
        (mg.Presentation(drawings=(mg.Drawing("d", {"v": "v"}),)), "which it does not have"),
        (mg.Presentation({"u": {"signed": True}}), "the style of 'u' is"),  # type: ignore[dict-item]
        (mg.FieldStyle(signed=True), "presentation=FieldStyle"),
    ],
)
def test_names_that_the_model_lacks_are_refused(look: mg.Presentation, message: str) -> None:
    with pytest.raises(mg.MingaError, match=message):
        model(presentation=look)


def test_a_field_is_drawn_along_an_axis_that_it_has() -> None:
    row = mg.Field("row", GRID, axes="x")
    step = mg.Program("step")
    step.call(lambda engine: None, reads=[row], writes=[row])
    look = mg.Presentation({"row": mg.FieldStyle(along="y")})
    with pytest.raises(mg.LayoutError, match="'row' does not depend on 'y'"):
        mg.Model("row", GRID, (row,), step, output=("row",), presentation=look)


@pytest.mark.parametrize(
    "wrong", [{"along": 0}, {"section": ("y",)}, {"section": "y"}, {"section": ("y", "middle")}], ids=str
)
def test_invalid_styles(wrong: dict[str, Any]) -> None:
    with pytest.raises(mg.LayoutError, match=f"{next(iter(wrong))}=.*expected"):
        mg.FieldStyle(**wrong)


@pytest.mark.parametrize("option", ["colours", "signed", "section", "along"])
def test_former_options_of_fields_say_what_to_write(option: str) -> None:
    with pytest.raises(mg.LayoutError, match=rf"presentation=mg.Presentation\(fields={{'u': mg.FieldStyle\({option}="):
        mg.Field("u", GRID, **{option: None})


def test_unknown_options_of_fields_are_errors_of_python() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'colors'"):
        mg.Field("u", GRID, colors=())  # type: ignore[arg-type]


def test_former_drawings_of_a_model_say_what_to_write() -> None:
    with pytest.raises(mg.ProgramError, match=r"presentation=mg\.Presentation"):
        model(drawings=())
