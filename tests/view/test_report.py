"""The report: complete, self-contained, escaped, and there whatever a run left."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

import minga as mg
from browser import chromium
from minga.errors import RunError
from minga.output.directory import RunDirectory
from minga.output.happenings import note_happening
from minga.space.field import Field
from minga.space.grid import Grid
from minga.view.report import write_report
from run_files import add_plan, make_run, put

VOID = {"meta", "img", "br", "input", "link", "hr"}


class Page(HTMLParser):
    """What is in a page: text, images, tags with attributes; fails where tags do not match."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(self.source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))

    def images(self) -> Iterator[np.ndarray]:
        for tag, attributes in self.tags:
            if tag == "img":
                kind, _, data = (attributes["src"] or "").partition(",")
                assert kind == "data:image/png;base64"
                yield np.asarray(PIL.Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))

    def count(self, tag: str, **attributes: str) -> int:
        return sum(t == tag and all(a.get(k) == v for k, v in attributes.items()) for t, a in self.tags)


def cells(step: int) -> np.ndarray:
    """A bar that moves one row a step."""
    values = np.zeros((20, 30), "u1")
    values[step // 10 % 20] = 1
    return values


LAYOUT = [{"rank": r, "lo": [5 * r, 0], "hi": [5 * r + 5, 30]} for r in range(4)]


def test_everything_a_run_left_is_in_one_file(tmp_path: Path) -> None:
    frames = {step: cells(step) for step in range(0, 101, 10)}
    series = {"step": [0, 50, 100], "population": [3, 5, 7], "histogram": [[9, 3], [7, 5], [5, 7]]}
    run = make_run(tmp_path / "run", Field("cell", Grid((20, 30)), "u1"), frames, ranks=4, layout=LAYOUT, series=series)
    path = write_report(run)
    assert path == tmp_path / "run" / "report.html"
    page = Page(path)
    for word in ("small", "20 × 30 cells on 4 ranks", "all 100 steps done", "0123456789abcdef", "B3/S23", "soup = 0.3"):
        assert word in page.text
    for section in ("What ran", "The decomposition", "Observables over time", "Messages", "How to reproduce"):
        assert section in page.text
    assert "24 messages with 2.4 kB in all" in page.text
    assert "minga run" in page.text
    # Eleven frames and the last one again under the blocks; state 1 is dark where the bar is.
    images = list(page.images())
    assert len(images) == 12
    for number, image in enumerate(images):
        step = min(10 * number, 100)
        assert image.shape == (20, 30, 3)
        assert ((image[..., 0] < 100) == (cells(step) == 1)).all()
    assert page.count("rect", **{"class": "edge"}) == 4
    assert page.count("path", **{"class": "curve"}) == 3
    assert "rank 3: compute 0.4 s" in page.text
    assert "The kernels of rank 3 take longest, 60 % longer" in page.text


def test_the_plan_and_what_came_of_it(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Field("cell", Grid((20, 30)), "u1"), {0: cells(0)}, ranks=4, layout=LAYOUT)
    add_plan(run, LAYOUT, [150] * 4)
    page = Page(write_report(run))
    for words in (
        "A step was predicted to take 2.5 ms and took 5 ms: the prediction was 50 % too short.",
        "halo depth 2 steps",
        "speeds and links measured by the ranks",
        "attic was left out: its <link> is too slow.",
        "0: 25 %",
        "imbalance extra computing of the rank that had the most work for its speed 50 ms 10.0 %",
        "network that rank's messages, waits and agreements 0.15 s 30.0 %",
        "layout slabs equal parts 1 ms by their speed",
        "As in a run without a plan: mapping.",
        "The balance of the ranks was checked 9 times, and work was moved 2 times: 4 kB in all.",
        "the regret is 20.0 %.",
        "pc3 150 25 % 2 ms 4 ms 4.1 kB",
        "rank 3, measured: compute 4 ms",
    ):
        assert words in page.text, words
    assert page.count("rect", **{"class": "part"}) == 4


@pytest.mark.parametrize("shape", [(40,), (20, 30), (6, 8, 10)])
def test_a_plan_of_any_number_of_axes_is_drawn(tmp_path: Path, shape: tuple[int, ...]) -> None:
    half = shape[0] // 2
    zeros = [0] * len(shape)
    blocks = [
        {"rank": 0, "lo": zeros, "hi": [half, *shape[1:]]},
        {"rank": 1, "lo": [half, *zeros[1:]], "hi": list(shape)},
    ]
    frame = np.zeros(shape, "u1")
    run = make_run(tmp_path / "run", Field("cell", Grid(shape), "u1"), {0: frame}, ranks=2, layout=blocks)
    add_plan(run, blocks, [frame.size // 2] * 2)
    page = Page(write_report(run))
    assert page.count("rect", **{"class": "part"}) == 2  # the plane that shows most
    assert "50 %" in page.text
    assert ("axes 1 (down) and 3 (across) of 3" in page.text) == (len(shape) == 3)


def test_a_run_on_many_hosts_has_a_row_a_host(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Field("cell", Grid((20, 30)), "u1"), {0: cells(0)}, ranks=40)
    add_plan(run, [], [15] * 40)
    plan = json.loads(run.plan.read_text())
    for line in plan["ranks"]:
        line["host"] = f"pc{line['rank'] % 4}"
    put(run.plan, plan)
    text = Page(write_report(run)).text
    assert "10 ranks pc1 150 25 %" in text
    assert "38 ms" in text  # the slowest of them: rank 37


def test_a_run_that_predicted_nothing_says_so(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Field("cell", Grid((20, 30)), "u1"), {0: cells(0)}, ranks=2, layout=LAYOUT[:2])
    add_plan(run, LAYOUT[:2], [150] * 2)
    plan, ledger = (json.loads(path.read_text()) for path in (run.plan, run.ledger))
    put(run.plan, plan | {"plan": None, "source": "equal shares"})
    put(run.ledger, ledger | {"account": ledger["account"] | {"predicted": None}, "balance": None})
    text = Page(write_report(run)).text
    assert "Nothing was predicted. A step took 5 ms." in text
    assert "What imbalance and network cost" in text
    for words in ("What was chosen", "What was moved", "was left out"):
        assert words not in text


@pytest.mark.parametrize(
    ("reason", "settings"),
    [
        ("steps", ""),
        ("condition", ""),
        ("asked", " --set run.steps=100"),
        ("wall time", " --set run.steps=100 --set 'stop.wall_time=1000 d'"),
    ],
)
def test_what_repeats_a_run_does_as_many_steps(tmp_path: Path, reason: str, settings: str) -> None:
    run = make_run(tmp_path / "a run", Field("cell", Grid((20, 30)), "u1"), {0: cells(0), 100: cells(100)})
    result = json.loads(run.result.read_text())
    run.result.write_text(json.dumps(result | {"ended": {"reason": reason, "step": 100, "text": "..."}}))
    assert f"minga run '{run.case}' -n 1{settings} python -c" in Page(write_report(run)).text


def test_losses_and_returns_of_hosts_are_told(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Field("cell", Grid((20, 30)), "u1"), {0: cells(0)})
    assert "Losses and returns" not in Page(write_report(run)).text
    for step in range(52):
        note_happening(run, 1000 + step, f"the run continues without host {step}")
    with run.happened.open("a") as stream:
        stream.write('{"step": 9')  # a power failure in the middle of a line
    text = Page(write_report(run)).text
    assert "Losses and returns of hosts" in text
    assert "the run continues without host 49" in text
    assert "1 049" in text or "1,049" in text or "1049" in text
    assert "the run continues without host 50" not in text
    assert "And 2 more" in text


def test_nothing_is_fetched_and_nothing_is_written_beside(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Field("cell", Grid((20, 30)), "u1"), {0: cells(0), 10: cells(10)})
    before = {path.name for path in run.path.iterdir()}
    page = Page(write_report(run))
    assert {path.name for path in run.path.iterdir()} == before | {"report.html"}
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:)""", page.source)
    assert not re.search(
        r"url\((?!data:)|@import|https?://", page.source.replace('xmlns="http://www.w3.org/2000/svg"', "")
    )
    assert "default-src 'none'" in page.source


def test_names_are_escaped(tmp_path: Path) -> None:
    field = Field("cell", Grid((20, 30)), "u1", description="<script>alert(1)</script>")
    nasty = "</script><img src=x onerror=alert(1)>"
    series = {"step": [0, 1], f"a {nasty}": [1.0, 2.0], '"&': [[1, 2], [3, 4]]}
    run = make_run(tmp_path / "run", field, {0: cells(0)}, name="<b>&amp; 'x'", series=series)
    page = Page(write_report(run))
    assert page.count("script") == 2
    assert page.count("b") == page.source.count('<div class="card"><b')
    assert page.count("img", src="x") == 0
    assert "<b>&amp; 'x'" in page.text
    assert f"a {nasty}" in page.text


@pytest.mark.parametrize(
    ("shape", "dtype", "images"),
    [
        ((40,), "u1", 1),
        ((40,), "f8", 1),
        ((12, 14, 16), "u1", 3),
        ((3, 4, 5, 6), "f4", 3),
        ((1, 1), "f8", 3),
        ((9, 700), "i4", 3),
    ],
)
def test_any_number_of_axes(tmp_path: Path, shape: tuple[int, ...], dtype: str, images: int) -> None:
    rng = np.random.default_rng(1)
    frames = {step: (rng.random(shape) * 3).astype(dtype) for step in (0, 7, 100)}
    layout = [
        {"rank": 0, "lo": [0] * len(shape), "hi": [-(-shape[0] // 2), *shape[1:]]},
        {"rank": 1, "lo": [-(-shape[0] // 2), *[0] * (len(shape) - 1)], "hi": list(shape)},
    ]
    run = make_run(tmp_path / "run", Field("u", Grid(shape), dtype), frames, ranks=2, layout=layout)
    page = Page(write_report(run))
    assert len(list(page.images())) == images + 1
    shown = 2 if len(shape) < 3 else 1
    assert page.count("rect", **{"class": "edge"}) == shown
    assert ("of them are cut by the plane" in page.text) == (len(shape) > 2)


def test_floats_go_upwards_and_so_do_their_blocks(tmp_path: Path) -> None:
    values = np.zeros((20, 30))
    values[:10] = 1.0
    run = make_run(tmp_path / "run", Field("u", Grid((20, 30))), {0: values}, ranks=4, layout=LAYOUT)
    page = Page(write_report(run))
    image = next(page.images())
    assert (image[-1] == [253, 231, 36]).all() or image[-1, 0, 0] > image[0, 0, 0]
    edges = [attributes for tag, attributes in page.tags if tag == "rect" and attributes.get("class") == "edge"]
    assert [float(edge["y"] or 0) for edge in edges] == sorted((float(e["y"] or 0) for e in edges), reverse=True)


def test_values_that_are_not_finite(tmp_path: Path) -> None:
    values = np.array([[np.nan, 1.0], [np.inf, 2.0]])
    series = {"step": [0, 1, 2], "norm": ["nan", 1.0, None], "flat": [0.0, 0.0, 0.0], "gone": ["inf", "nan", None]}
    run = make_run(tmp_path / "run", Field("u", Grid((2, 2))), {0: values}, series=series)
    page = Page(write_report(run))
    assert page.count("path", **{"class": "curve"}) == 2


def drawn(page: Page) -> list[tuple[float, float]]:
    """Points of the only curve of a page."""
    (path,) = (tag for name, tag in page.tags if name == "path" and tag.get("class") == "curve")
    points = re.split("[ML]", path["d"] or "")[1:]
    return [(float(x), float(y)) for x, y in (point.split() for point in points)]


def test_observables_are_drawn_over_the_time(tmp_path: Path) -> None:
    series = {"step": [0, 1, 2], "time_observed": [0.0, 0.25, 4.0], "norm": [1.0, 2.0, 3.0]}
    run = make_run(tmp_path / "run", Field("u", Grid((2, 2))), {0: np.zeros((2, 2))}, series=series)
    text = write_report(run).read_text(encoding="utf-8")
    assert "To the right: time" in text
    places = [x for x, _ in drawn(Page(run.path / "report.html"))]
    assert (places[1] - places[0]) / (places[2] - places[0]) == pytest.approx(1 / 16, rel=0.05)


def test_frames_have_the_time_of_the_model_with_its_unit(tmp_path: Path) -> None:
    """Beside their steps, in all that the slider shows."""
    model = mg.pde(
        {"u": "laplace(u)"}, Grid((6, 8), spacing=1.0, periodic=True), initial={"u": 0.5}, dt=0.125, unit="s"
    )
    mg.run(model, steps=40, every=20, out=tmp_path / "run")
    page = Page(write_report(RunDirectory(tmp_path / "run")))
    assert [word for word in page.words if word.startswith("step ")][:4] == [
        "step 0, t = 0 s", "step 20, t = 2.5 s", "step 40, t = 5 s", "step 40, t = 5 s",
    ]  # fmt: skip


def test_ticks_of_small_changes_differ(tmp_path: Path) -> None:
    series = {"step": [0, 1, 2], "time_observed": [0.0, 0.25, 4.0], "time": [0.0, 0.25, 4.0]}
    run = make_run(tmp_path / "plain", Field("u", Grid((2, 2))), {0: np.zeros((2, 2))}, series=series)
    assert "polyline" not in (plain := write_report(run).read_text(encoding="utf-8")), "no time over the time"
    assert "Observables over time" not in plain
    series["total"] = [0.4, 0.4 + 1e-9, 0.4 + 4e-9]
    run = make_run(tmp_path / "run", Field("u", Grid((2, 2))), {0: np.zeros((2, 2))}, series=series)
    labels = re.findall(r'class="tick"[^>]*>([^<]*)<', write_report(run).read_text(encoding="utf-8"))
    assert "0.4" in labels
    assert sum(label.startswith("+") for label in labels) == 4
    assert len(set(labels)) == len(labels)


def test_rounding_is_drawn_as_a_constant(tmp_path: Path) -> None:
    series = {"step": [0, 1, 2], "total": [1.05, 1.05 + 2e-15, 1.05 - 2e-15]}
    run = make_run(tmp_path / "run", Field("u", Grid((2, 2))), {0: np.zeros((2, 2))}, series=series)
    heights = [y for _, y in drawn(Page(write_report(run)))]
    assert max(heights) - min(heights) < 0.1


@pytest.mark.parametrize("missing", ["result.json", "ledger.json", "case.toml", "fields.zarr"])
def test_what_is_missing_is_left_out(tmp_path: Path, missing: str) -> None:
    import shutil

    run = make_run(tmp_path / "run", Field("cell", Grid((20, 30)), "u1"), {0: cells(0)}, ranks=4, layout=LAYOUT)
    target = run.path / missing
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    assert "How to reproduce" in Page(write_report(run)).text


def test_an_older_or_broken_file_does_no_harm(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Field("cell", Grid((20, 30)), "u1"), {0: cells(0)})
    put(run.result, {**json.loads(run.result.read_text()), "layout": [{"rank": 0}], "costs": None, "environment": []})
    run.ledger.write_text('{"ranks": [{"rank": 0')
    run.series.write_text('{"step": [0, 1], "population": [1]}')
    page = Page(write_report(run))
    assert "The decomposition" not in page.text
    assert "Where the time went" not in page.text


def test_a_run_that_failed_says_so(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Field("u", Grid((20, 30))), {0: np.zeros((20, 30))})
    run.result.unlink()
    put(run.progress, {"state": "failed", "reason": "u is not finite at cell (3, 5)", "step": 40})
    assert "failed after step 40 or later: u is not finite at cell (3, 5)" in Page(write_report(run)).text


def test_what_was_left_out_is_told(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Field("cell", Grid((20, 30)), "u1"), {0: cells(0)}, ranks=2)
    ledger = json.loads(run.ledger.read_text())
    for line, skipped in zip(ledger["ranks"], (0.9, 0.5), strict=True):
        line["skipped"] = skipped
    put(run.ledger, ledger)
    assert "70 % of the cells were left out" in Page(write_report(run)).text


def test_pictures_have_a_bounded_size(tmp_path: Path) -> None:
    """Frames of noise are left out until the rest fits; the first and the last stay."""
    rng = np.random.default_rng(2)
    frames = {step: rng.integers(0, 250, (600, 600)).astype("u1") for step in range(20)}
    run = make_run(tmp_path / "run", Field("cell", Grid((600, 600)), "u1"), frames)
    path = write_report(run)
    assert path.stat().st_size < 5_000_000
    page = Page(path)
    assert "step 19" in page.text
    assert "step 0" in page.text
    assert "frames of the run are not shown here" in page.text


def test_many_ranks(tmp_path: Path) -> None:
    """A thousand ranks: bars of several ranks each, no table and no matrix, and still a quick page."""
    layout = [{"rank": r, "lo": [r, 0], "hi": [r + 1, 4]} for r in range(1000)]
    field = Field("cell", Grid((1000, 4)), "u1")
    run = make_run(tmp_path / "run", field, {0: np.zeros((1000, 4), "u1")}, ranks=1000, layout=layout)
    page = Page(write_report(run))
    assert page.count("rect", **{"class": "edge"}) == 1000
    assert page.count("rect", **{"class": "pair"}) == 0
    assert len(set(re.findall(r"ranks \d+\u2013\d+", page.text))) == 63


def test_a_disk_that_refuses(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Field("cell", Grid((20, 30)), "u1"), {0: cells(0)})
    (run.path / "report.html").mkdir()
    with pytest.raises(RunError, match="cannot write"):
        write_report(run)


@pytest.mark.slow
def test_in_a_browser(tmp_path: Path) -> None:
    """The movie plays to its end, blocks are shown as asked, and nothing is wider than a telephone."""
    frames = {step: cells(step) for step in range(0, 101, 10)}
    series = {"step": list(range(50)), "a_rather_long_name_of_something_observed": list(range(50))}
    field = Field("cell", Grid((20, 30)), "u1")
    run = make_run(tmp_path / "run", field, frames, ranks=4, layout=LAYOUT, series=series, name="x" * 200)
    with chromium() as browser:
        page = browser.open(write_report(run).resolve().as_uri(), width=390)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        shown = "document.querySelector('.player figure.shown').dataset.step"
        assert page.evaluate(shown) == "100"
        visible = "[...document.querySelectorAll('.player figure')].filter(f => f.offsetParent).length"
        assert page.evaluate(visible) == 1
        slide = "(s => { s.value = 3; s.dispatchEvent(new Event('input')); })(document.querySelector('[type=range]'))"
        page.evaluate(slide)
        assert page.evaluate(shown) == "30"
        page.evaluate("document.querySelector('.player button').click()")
        page.until(f"{shown} === '100' && document.querySelector('.player button').textContent === 'Play'")
        waiting = "getComputedStyle(document.querySelector('.by-wait')).visibility"
        assert page.evaluate(waiting) == "hidden"
        page.evaluate("document.querySelector('.on-wait').click()")
        assert page.evaluate(waiting) == "visible"
        assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth === 30)")
