"""A live picture in a notebook, and what becomes of it elsewhere."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import minga as mg
from minga.engine.comm import Comm


def model() -> mg.Model:
    return mg.automaton("B3/S23", (16, 16), init={"soup": 0.4})


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_rank_0_gets_pictures_and_all_get_the_same_bits(ranks: int) -> None:
    seen: list[str] = []

    def run(comm: Comm) -> Any:
        watching = mg.live(seconds=1e6, show=lambda picture: seen.append(picture.caption))
        return mg.run(model(), steps=6, comm=comm, observers=[watching]).digest

    digests = mg.run_virtual(ranks, run)
    assert seen == ["cell, step 0", "cell, step 6"]
    assert set(digests) == {mg.run(model(), steps=6).digest}


@pytest.mark.slow
def test_a_notebook_renews_one_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, str]] = []

    class Handle:
        def update(self, item: Any) -> None:
            shown.append(("update", item.caption))

    def display(item: Any, display_id: bool) -> Handle:
        assert display_id
        assert item._repr_html_().startswith("<img ")
        shown.append(("display", item.caption))
        return Handle()

    ipython, of_display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    of_display.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", of_display)
    heat = mg.pde("laplace(u)", mg.Grid((4, 4)), initial=1.0, integrator="euler", dt=0.1)
    mg.run(heat, steps=5, observers=[mg.live("u", seconds=1e6)], progress=False)
    assert shown == [("display", "u, step 0, t = 0"), ("update", "u, step 5, t = 0.5")]


def test_elsewhere_it_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("a picture that nobody sees")

    monkeypatch.setattr("minga.running.observers.live.frame_figure", fail)
    mg.run(model(), steps=3, observers=[mg.live()])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mg.live(5), "live.5.: expected the name of a field"),  # type: ignore[arg-type]
        (lambda: mg.live(show=3), "live.show=3.: expected a function"),  # type: ignore[arg-type]
        (lambda: mg.live(seconds=-1), "positive number"),
        (lambda: mg.run(model(), steps=1, observers=[mg.live("cel")]), "no field 'cel'"),
    ],
)
def test_invalid_arguments(make: Any, message: str) -> None:
    with pytest.raises(mg.MingaError, match=message):
        make()
