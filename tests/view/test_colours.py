"""Every value has one colour, the same wherever it is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import minga as mg
from minga.engine.presentation import FieldStyle
from minga.errors import KernelError, LayoutError
from minga.output.variables import variable_of
from minga.space.field import Field
from minga.space.grid import Grid
from minga.view.colours import colour_scale, limits_of, values_shown

OWN = ("#102030", "#405060", "#708090")


@pytest.mark.parametrize("dtype", ["bool", "u1", "i2", "i8", "u8"])
def test_few_states_have_a_colour_each(dtype: str) -> None:
    values = np.array([[0, 1, 1], [1, 0, 0]]).astype(dtype)
    scale = colour_scale((0, 1), values.dtype, {})
    assert scale.states
    assert scale.hexadecimal == ["#f7f5ef", "#1f3b57"]
    assert scale.numbers(values).tolist() == values.astype(int).tolist()
    assert scale.rgb(values)[0, 1].tolist() == [0x1F, 0x3B, 0x57]


def test_state_0_keeps_its_colour_where_no_cell_has_it() -> None:
    scale = colour_scale((1, 2), np.dtype("u1"), {})
    assert (scale.low, len(scale.palette)) == (0, 3)
    negative = colour_scale((-1, 1), np.dtype("i2"), {})
    assert negative.numbers(np.array([-1, 0, 1, 7, -9], "i2")).tolist() == [0, 1, 2, 2, 0]


def test_floats_and_many_states_have_a_smooth_scale() -> None:
    scale = colour_scale((-1.0, 3.0), np.dtype("f8"), {})
    numbers = scale.numbers(np.array([-1.0, 1.0, 3.0, 99.0, -99.0, np.nan, np.inf]))
    assert numbers.tolist() == [0, 127, 254, 254, 0, 255, 255]
    assert not colour_scale((0, 200), np.dtype("u1"), {}).states
    assert colour_scale((2.0, 2.0), np.dtype("f4"), {}).numbers(np.array([2.0], "f4")).tolist() == [0]


def test_floats_below_zero_have_a_smooth_scale() -> None:
    scale = colour_scale((-3.0, -1.0), np.dtype("f8"), {})
    assert (scale.low, scale.high, scale.states) == (-3.0, -1.0, False)


def test_large_integers_are_told_apart() -> None:
    low = 2**62
    scale = colour_scale((low, low + 3), np.dtype("i8"), {})
    assert scale.numbers(np.array([low, low + 1, low + 3])).tolist() == [0, 1, 3]


def test_limits_hold_all_finite_values() -> None:
    assert limits_of([np.array([1.0, np.nan]), np.array([-2.0, np.inf])])[:2] == (-2.0, 1.0)
    assert limits_of([np.array([np.nan])])[:2] == (0.0, 1.0)
    assert limits_of([])[:2] == (0.0, 1.0)


def test_a_signed_scale_shows_most_frames_of_values_that_grow() -> None:
    """Disturbances grow by decades until they saturate; quiet frames are not shown at the cost of those at the end."""
    values = np.linspace(-1.0, 1.0, 1001)
    grown = [values * size for size in (1e-4, 1e-3, 1e-2, 0.1, 0.8, 1.0, 1.2)]
    assert limits_of(grown, signed=True).high == pytest.approx(0.9 * 0.97, abs=1e-2)
    assert limits_of([values * 1e-3, values], signed=True).high == pytest.approx(0.97, abs=1e-2)
    decayed = [values, *[values * 1e-3] * 3]
    assert limits_of(decayed, signed=True).high == pytest.approx(0.97e-3, abs=1e-5)


def test_a_signed_scale_ends_where_values_are_usual() -> None:
    quiet = np.linspace(-1.0, 1.0, 1001)
    loud, silent = quiet * 1000, np.zeros(1001)
    low, high, least, most = limits_of([silent, loud, quiet, quiet * 1.1, np.array([np.nan])], signed=True)
    assert low == -high
    assert (least, most) == (-1000.0, 1000.0)
    assert high == pytest.approx(1.05 * 0.97, abs=1e-2)
    assert limits_of([silent], signed=True)[:2] == (-1.0, 1.0)
    scale = colour_scale((low, high), quiet.dtype, {"colour_scale": "signed"})
    assert (scale.low, scale.high) == (low, high)
    assert np.ptp(scale.rgb(np.array([0.0])).astype(int)) < 8  # white


def test_densities_are_drawn_by_their_logarithms() -> None:
    attributes = {"colour_scale": "logarithmic"}
    values = np.array([1e-3, 0.0, -1.0, 1e18])
    shown = values_shown(values, attributes)
    assert shown == pytest.approx([-3.0, np.nan, np.nan, 18.0], nan_ok=True)
    assert values_shown(values, {}) is values
    scale = colour_scale(limits_of([shown]), shown.dtype, attributes)
    assert (scale.low, scale.high) == (-3.0, 18.0)
    assert scale.number(scale.high) == pytest.approx(1e18)
    grid = Grid((4,))
    style = FieldStyle(logarithmic=True)
    assert variable_of(Field("n", grid), style).attributes["colour_scale"] == "logarithmic"
    with pytest.raises(LayoutError, match="both signed and logarithmic"):
        FieldStyle(signed=True, logarithmic=True)


def test_one_last_peak_does_not_spoil_the_others() -> None:
    frames = [np.linspace(-1.0, 1.0 + k / 10, 100) for k in range(5)]
    peak = np.linspace(-1.0, 1.0, 100)
    peak[7] = 80.0
    limits = limits_of([*frames, peak])
    assert limits == (-1.0, 1.4, -1.0, 80.0)
    assert colour_scale(limits, peak.dtype, {}).clipped == "clipped, values are -1 to 80"
    assert limits_of([*frames, -peak]) == (-1.0, 1.4, -80.0, 1.4)
    whole = limits_of([*frames, np.full(100, 3.0)])
    assert whole == (-1.0, 3.0, -1.0, 3.0)  # not far enough to be clipped
    assert colour_scale(whole, peak.dtype, {}).clipped == ""
    small = np.linspace(-1.0, 1.0, 1000)
    small[-7:] = 6.0  # more than twice as far, in less than a hundredth of the cells
    assert limits_of([*frames, small])[:2] == (-1.0, 1.4)
    assert limits_of([*frames, -small])[:2] == pytest.approx((-1.0, 1.4))
    small[-70:] = 6.0
    assert limits_of([*frames, small])[:2] == (-1.0, 6.0)
    assert limits_of([peak, frames[0], frames[1]])[:2] == (-1.0, 80.0)  # too few frames to say what is usual
    assert limits_of([np.arange(5) + (100 if k == 4 else k) for k in range(5)])[:2] == (0, 104)  # states are states
    still = [np.zeros(9)] * 5
    assert limits_of([*still, peak])[:2] == (-1.0, 80.0)  # frames of one value do not say what is usual


def test_a_field_may_say_its_colours() -> None:
    field = Field("cell", Grid((3, 3)), "u1")
    attributes = variable_of(field, FieldStyle(colours=OWN)).attributes
    assert attributes["flag_colors"] == " ".join(OWN)
    assert colour_scale((0, 1), np.dtype("u1"), attributes).hexadecimal == list(OWN)
    assert colour_scale((0, 3), np.dtype("u1"), attributes).hexadecimal[0] != OWN[0]  # a state without one
    assert not colour_scale((0, 1), np.dtype("f8"), attributes).states


@pytest.mark.parametrize("said", ["", "red green", "#12345", 7, None, "#102030 rubbish"])
def test_attributes_that_are_no_colours_are_passed_over(said: object) -> None:
    assert colour_scale((0, 1), np.dtype("u1"), {"flag_colors": said}).hexadecimal[0] == "#f7f5ef"


@pytest.mark.parametrize("colours", [["red"], "#102030", ["#10203"], [3], ["#102030"] * 257])
def test_wrong_colours_of_a_field(colours: object) -> None:
    with pytest.raises(LayoutError, match="colour"):
        FieldStyle(colours=colours)


def test_the_colours_of_a_rule_reach_its_field() -> None:
    @mg.rule(states=3, colours=OWN)
    def turning(cell, near):
        return (cell + 1) % 3

    @mg.block_rule(states=3, colours=OWN)
    def mirrored(block):
        nw, ne, sw, se = block
        return ne, nw, se, sw

    start = {"soup": 0.5}
    assert mg.automaton(turning, (8, 8), init=start).presentation.style("cell").colours == OWN
    assert mg.automaton(mirrored, (8, 8), init=start).presentation.style("cell").colours == OWN
    assert mg.automaton("B3/S23", (8, 8), init=start, colours=OWN[:2]).presentation.style("cell").colours == OWN[:2]
    packed = mg.automaton("B3/S23", (64, 64), init=start, storage="bits", colours=OWN[:2])
    assert packed.presentation.style("cell").colours == OWN[:2]


def test_wrong_colours_of_a_rule() -> None:
    with pytest.raises(KernelError, match="2 colours for 3 states"):

        @mg.rule(states=3, colours=OWN[:2])
        def turning(cell, near):
            return (cell + 1) % 3

    with pytest.raises(mg.CaseError, match="3 colours for 2 states"):
        mg.automaton("B3/S23", (8, 8), init={"soup": 0.5}, colours=OWN)


def test_cells_that_age_fade() -> None:
    start = {"soup": 0.5}
    assert mg.automaton("B3/S23", (8, 8), init=start).presentation.style("cell").colours == ()
    ages = mg.automaton("345/2/8", (8, 8), init=start).presentation.style("cell").colours
    assert (len(ages), ages[1], ages[2], ages[-1]) == (8, "#1f3b57", "#c8381e", "#f2dca8")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("1 255 0 0\n2 0 255 0\n", ("#303030", "#ff0000", "#00ff00")),
        ("0 1 2 3\n255 0 0 255 255 0\n", ("#010203", "#ff0000", "#ffff00")),
        ("1 255 0 0\n", ()),
        ("red green\n1 2 3 400\n1 2 99999999999 3\n", ()),
        ("", ()),
    ],
)
def test_a_rule_file_says_its_colours(tmp_path: Path, lines: str, expected: tuple[str, ...]) -> None:
    table = "@RULE turn\n@TABLE\nn_states:3\nneighborhood:Moore\nsymmetries:permute\n1,0,0,0,0,0,0,0,0,2\n"
    (tmp_path / "turn.rule").write_text(f"{table}@COLORS\n{lines}")
    model = mg.automaton("turn.rule", (8, 8), init={"soup": 0.5}, directory=tmp_path)
    assert model.presentation.style("cell").colours == expected
