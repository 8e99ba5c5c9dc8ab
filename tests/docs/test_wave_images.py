"""The picture of images by elastic waves, from the variables of the program on its page."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from loading import SCRIPTS, load

SCRIPT = load(SCRIPTS / "wave_images.py")


def test_the_interface_is_drawn_where_the_rock_below_begins() -> None:
    z, x = np.meshgrid(np.arange(40), np.arange(60), indexing="ij")
    image = SimpleNamespace(values=np.random.default_rng(3).standard_normal(z.shape), spacing=(10.0, 10.0))
    figure = SCRIPT.draw({"stack": SimpleNamespace(pp=image, ps=image), "below": z > 20 + 0.0 * x})
    assert [plot.get_title() for plot in figure.axes] == ["PP", "PS"]
    for plot in figure.axes:
        assert np.allclose(plot.lines[0].get_ydata(), 205.0)
        assert plot.images[0].get_extent() == [-5.0, 595.0, 395.0, 75.0]


def test_the_page_has_a_program_with_these_variables() -> None:
    program = SCRIPT.program()
    assert "\nstack = " in program
    assert "\nbelow = " in program
