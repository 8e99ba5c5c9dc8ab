"""Pages by keys alone, on a small screen: Tab focuses each control visibly, and each control has a name."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import Browser, Page, chromium
from live_server import serving
from minga.output.edits import Canvas, Wishes
from minga.output.progress import ProgressFile
from minga.space.field import Field
from minga.space.grid import Grid
from minga.studies.demo.page import write_page
from minga.studies.demo.parts import Part, Show
from minga.studies.demo.play import play
from minga.view.live.server import LiveServer
from minga.view.report import write_report
from run_files import make_run

pytestmark = pytest.mark.slow
SMALL = 360
"""Width of a telephone."""
LAYOUT = [{"rank": r, "lo": [5 * r, 0], "hi": [5 * r + 5, 30]} for r in range(4)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def cells(step: int) -> np.ndarray:
    values = np.zeros((20, 30), "u1")
    values[step // 10 % 20] = 1
    return values


def check(page: Page) -> list[dict[str, Any]]:
    """Return the elements that Tab focuses, after the checks that are common to all pages."""
    stops = page.stops()
    assert stops
    assert [stop for stop in stops if not (stop["seen"] and stop["name"] and stop["inside"])] == []
    assert [stop["place"] for stop in stops] == sorted(stop["place"] for stop in stops)
    assert page.unnamed() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= SMALL
    return stops


def focus(page: Page, what: str) -> None:
    page.evaluate(f"document.querySelector({json.dumps(what)}).focus()")


def test_a_report(browser: Browser, tmp_path: Path) -> None:
    frames = {step: cells(step) for step in range(0, 101, 10)}
    series = {"step": list(range(50)), "population": list(range(50))}
    run = make_run(tmp_path / "run", Field("cell", Grid((20, 30)), "u1"), frames, ranks=4, layout=LAYOUT, series=series)
    page = browser.open(write_report(run).resolve().as_uri(), width=SMALL)
    stops = check(page)
    assert [stop["kind"] for stop in stops][:3] == ["button", "range", "radio"]
    assert stops[0]["name"] == "Play cell"
    shown = "document.querySelector('.player figure.shown').dataset.step"
    focus(page, ".player input")
    page.press("ArrowLeft")
    assert page.evaluate(shown) == "90"
    assert page.evaluate("document.activeElement.getAttribute('aria-valuetext')") == "step 90"
    page.press("Home")
    assert page.evaluate(shown) == "0"
    focus(page, ".player button")
    page.press(" ")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Pause cell"
    page.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "Play"
    focus(page, ".on-rank")
    page.press("ArrowRight")
    assert page.evaluate("getComputedStyle(document.querySelector('.by-wait')).visibility") == "visible"


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveServer]:
    """The page of a run that continues and may be painted, with three frames."""
    run = make_run(
        tmp_path / "run", Field("cell", Grid((20, 30)), "u1"), {step: cells(step) % 3 for step in (0, 10, 20)}
    )
    run.result.unlink()
    ProgressFile(run, 100, 600, 1).running(20, 1.0, 20)
    with serving(run) as server:
        yield server


def test_a_live_page(browser: Browser, live: LiveServer) -> None:
    wishes = Wishes(live.reader.directory.painting, Canvas((20, 30), {"cell": 2}))
    page = browser.open(live.address, width=SMALL)
    page.until("document.body.dataset.ready && !document.getElementById('fresh').hidden")
    stops = check(page)
    assert [stop["id"] or stop["name"] for stop in stops] == ["fresh", "state 1", "slider"]
    focus(page, "#brushes [tabindex='0']")
    page.press("ArrowLeft")
    assert page.evaluate("document.activeElement.textContent") == "state 0"
    page.press("ArrowLeft")
    assert page.evaluate("document.activeElement.getAttribute('aria-checked')") == "true"
    focus(page, "#fresh")
    for key in ("1", "ArrowUp", " ", "ArrowRight", "0", " "):
        page.press(key)
    edits, end = wishes.new(3), time.monotonic() + 60
    while sum(len(edit.states) for edit in edits) < 2:  # sent together, or one after the other on a busy machine
        assert time.monotonic() < end
        time.sleep(0.05)
        edits += wishes.new(3)
    assert [point for edit in edits for point in edit.points.tolist()] == [[9, 15], [9, 16]]
    assert [state for edit in edits for state in edit.states.tolist()] == [1, 0]
    page.until("document.getElementById('painted').textContent.endsWith('sent to the run')")
    page.press("Escape")
    assert page.evaluate("document.activeElement === document.body")
    focus(page, "#slider")
    page.press("ArrowLeft")
    page.until("document.getElementById('shown').textContent === 'step 10, stored'")
    assert page.evaluate("document.activeElement.getAttribute('aria-valuetext')") == "step 10"
    page.press("Escape")
    page.until("document.getElementById('shown').textContent === 'step 20, stored'")


def test_the_page_of_the_demo(browser: Browser, tmp_path: Path) -> None:
    show = Show("run life --set grid.shape='[32, 48]' --set run.steps=20 --set output.every=5 -n 1", fields=("cell",))
    outcome = play(Part("small", "A small run", "A glider and more.", (show,), ()), tmp_path)
    page = browser.open(write_page(tmp_path, [outcome], "0").resolve().as_uri(), width=SMALL)
    assert [stop["kind"] for stop in check(page)] == ["a", "button", "range", "a"]
    focus(page, ".player input")
    page.press("Home")
    assert page.evaluate("document.querySelector('.player .step').textContent") == "step 0"


def test_a_person_is_told_on_the_page_what_was_not_set(browser: Browser, live: LiveServer) -> None:
    wishes = Wishes(live.reader.directory.painting, Canvas((20, 30), {"cell": 2}))
    wishes.refuse("cells were not set after step 20: edits.jsonl cannot be written: No space left on device")
    page = browser.open(live.address, width=SMALL)
    page.until("document.getElementById('painted').textContent.includes('No space left on device')")
    assert page.evaluate("document.documentElement.scrollWidth") <= SMALL
