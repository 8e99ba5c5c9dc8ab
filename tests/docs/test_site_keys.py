"""The built site by keys alone, on a small and on a large screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from browser import Browser, Page, chromium

from .test_docs import ROOT

SITE = ROOT / "build" / "site"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="needs the site: run `make site` once"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def opened(browser: Browser, width: int) -> tuple[Page, list[dict[str, Any]]]:
    page = browser.open(next(SITE.rglob("rules.html")).as_uri(), width=width, height=800)
    return page, page.stops(40)


def test_a_large_screen(browser: Browser) -> None:
    page, stops = opened(browser, 1400)
    assert [stop for stop in stops if not (stop["seen"] and stop["name"] and stop["inside"])] == []
    assert page.unnamed() == []
    assert "text" in {stop["kind"] for stop in stops}  # the search


def test_a_small_screen(browser: Browser) -> None:
    """Closed drawers are out of the way; the keyboard opens them, and Escape closes them."""
    page, stops = opened(browser, 360)
    assert [stop["id"] for stop in stops if stop["kind"] == "checkbox"] == ["__navigation", "__toc"]
    assert [stop for stop in stops if not (stop["seen"] and stop["name"] and stop["inside"])] == []
    assert "text" not in {stop["kind"] for stop in stops}
    assert page.unnamed() == []
    ring = "getComputedStyle(document.querySelector('.nav-overlay-icon')).outlineStyle"
    page.evaluate("document.getElementById('__navigation').focus()")
    assert page.evaluate(ring) == "solid"
    drawer = "getComputedStyle(document.querySelector('.sidebar-drawer')).visibility"
    assert page.evaluate(drawer) == "hidden"
    page.press(" ")
    page.until(f"{drawer} === 'visible'")
    page.press("Escape")
    page.until(f"{drawer} === 'hidden'")
