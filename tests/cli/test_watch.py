"""The live page in a browser, and runs that are watched: they end with the same bits, whatever happens to the page."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import Page, chromium
from command_line import SMALL, command, in_process, nothing_written

LONG = """\
import itertools, time
import minga as mg
run = {"steps": 100000000, "ranks": 1}
output = {"every": 1000, "pictures": 0, "report": False}

@mg.kernel
def grow(u, new):
    new[0, 0] = u[0, 0] + mg.index(1, "f8")

def model():
    grid = mg.Grid((30, 40))
    u = mg.Field("u", grid, slots=2)
    step = mg.Program("step")
    step.apply(grow, u, u.next)
    step.rotate(u)
    pauses = itertools.chain(itertools.repeat(0.0, 100), itertools.repeat(0.1))
    step.call(lambda engine: time.sleep(next(pauses)), reads=[u], writes=[u])
    return mg.Model(name="long", grid=grid, fields=(u,), step=step, initial={"u": 0.0})
"""
"""Stores a second frame at once and then none for ten seconds, so that pictures in between are newer than all stored
ones, however busy the machine is."""


@pytest.fixture(autouse=True)
def case(in_tmp_path: Path) -> None:
    """A small case and one that goes on for a while, in the working directory."""
    Path("small.toml").write_text(SMALL)
    Path("long.py").write_text(LONG)


@contextlib.contextmanager
def running(*words: object) -> Iterator[subprocess.Popen[str]]:
    """``minga WORDS`` in a process of its own; interrupted at the end where it still runs."""
    with subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.communicate(timeout=10)
                except subprocess.TimeoutExpired:
                    process.kill()


def address(process: subprocess.Popen[str]) -> str:
    """The page's address, from the first line on standard error."""
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/", line)
    assert found, line
    return found.group()


def state(page: str, look: bool = True) -> dict[str, Any]:
    with urllib.request.urlopen(f"{page}state?look={int(look)}", timeout=20) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def wait(page: str, condition: str, seconds: float = 60) -> dict[str, Any]:
    """Poll the state, as a page does, until a Python expression of ``state`` holds."""
    end = time.monotonic() + seconds
    while not eval(condition, {"state": (found := state(page))}):
        assert time.monotonic() < end, found
        time.sleep(0.2)
    return found


def text(page: Page, identity: str) -> str:
    said: str = page.evaluate(f"document.getElementById('{identity}').textContent")
    return said


@pytest.mark.slow
def test_a_run_in_a_browser() -> None:
    with running("run", "long.py", "--serve") as process, chromium() as browser:
        page = browser.open(address(process))
        page.until("document.getElementById('state').textContent === 'running'")
        page.until("document.getElementById('picture').naturalWidth > 0")
        page.until("document.getElementById('shown').textContent.includes('as it is now')")
        page.until("document.getElementById('slider').max > 0")
        page.until("document.querySelectorAll('.rank').length === 1")
        first = int(text(page, "step").removeprefix("step ").replace("\u202f", ""))
        page.until(f"Number(document.getElementById('step').textContent.replace(/[^0-9]/g, '')) > {first}")
        assert text(page, "name") == "long"
        assert "100\u202f000\u202f000" in text(page, "steps")
        assert page.evaluate("document.getElementById('left').textContent").startswith(("about", "a few", "too early"))
        page.evaluate(
            "(slider => { slider.value = 0; slider.dispatchEvent(new Event('input')); })"
            "(document.getElementById('slider'))"
        )
        page.until("document.getElementById('shown').textContent === 'step 0, stored'")
        page.evaluate("document.getElementById('newest').click()")
        page.until("document.getElementById('shown').textContent !== 'step 0, stored'")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        page.evaluate("ask()")
        page.until("document.getElementById('state').textContent === 'stopped'")
        assert text(page, "digest") in out.replace("  ", "") or text(page, "digest").split()[1] in out
    assert not Path("runs/long/watching").exists()
    assert not Path("runs/long/preview.npz").exists()


PAINTED = """\
name = "painted"
model = "automaton"
[grid]
shape = [30, 40]
[automaton]
rule = "B3/S23"
init = {fill = 0}
[run]
steps = 20000000
ranks = 2
paint = true
[output]
every = 20
pictures = 0
report = false
"""

TWO = """\
import itertools, time
import minga as mg
run = {"steps": 100000000, "ranks": 1, "paint": True}
output = {"every": 1000, "pictures": 0, "report": False}

@mg.kernel
def keep(left, new):
    new[0, 0] = left[0, 0]

def model():
    grid = mg.Grid((30, 40))
    left, right = (mg.Field(name, grid, "u1", slots=2) for name in ("left", "right"))
    step = mg.Program("step")
    for field in (left, right):
        step.apply(keep, field, field.next)
        step.rotate(field)
    pauses = itertools.chain(itertools.repeat(0.0, 100), itertools.repeat(0.05))
    step.call(lambda engine: time.sleep(next(pauses)), reads=[left], writes=[left])
    states = mg.FieldStyle(colours=("#ffffff", "#000000"))
    return mg.Model(
        name="two", grid=grid, fields=(left, right), step=step, paintable={"left": 2, "right": 2},
        presentation=mg.Presentation(fields={"left": states, "right": states}),
    )
"""

DRAG = """(() => {
  const fresh = document.getElementById("fresh"), box = fresh.getBoundingClientRect();
  const at = (name, row, column) => fresh.dispatchEvent(new PointerEvent(name, {
    pointerId: 1, button: 0, buttons: 1, bubbles: true, pointerType: "touch",
    clientX: box.left + (column + 0.5) * box.width / 40, clientY: box.top + (row + 0.5) * box.height / 30 }));
  fresh.setPointerCapture = () => {};
  fresh.hasPointerCapture = () => true;
  at("pointerdown", 14, 10);
  at("pointermove", 14, 13);
  at("pointermove", 15, 13);
})()"""


def wait_for_lines(file: Path, count: int) -> None:
    end = time.monotonic() + 60
    while not file.is_file() or len(file.read_text().splitlines()) < count:
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.slow
def test_strokes_belong_to_the_field_that_was_painted() -> None:
    """Even if another field is chosen before they are sent."""
    Path("two.py").write_text(TWO)
    with running("run", "two.py", "--serve") as process, chromium() as browser:
        page = browser.open(address(process))
        page.until("!document.getElementById('fresh').hidden && document.getElementById('fresh').clientWidth > 0")
        assert page.evaluate("document.getElementById('fields').value") == "left"
        page.evaluate(DRAG)
        page.evaluate(
            "(fields => { fields.value = 'right'; fields.dispatchEvent(new Event('change')); })"
            "(document.getElementById('fields'))"
        )
        page.until(
            "document.getElementById('picture').dataset.field === 'right' && !document.getElementById('fresh').hidden"
        )
        page.evaluate(DRAG.replace("14, 10", "3, 4").replace("14, 13", "3, 5").replace("15, 13", "3, 6"))
        page.until("document.getElementById('painted').textContent === '3 cells sent to the run'")
        edits = Path("runs/two/edits.jsonl")
        wait_for_lines(edits, 2)
    lines = [json.loads(line) for line in edits.read_text().splitlines()]
    assert [line["field"] for line in lines] == ["left", "right"]
    assert sorted(lines[0]["cells"]) == [[14, 10, 1], [14, 11, 1], [14, 12, 1], [14, 13, 1], [15, 13, 1]]
    assert sorted(lines[1]["cells"]) == [[3, 4, 1], [3, 5, 1], [3, 6, 1]]


@pytest.mark.slow
def test_cells_are_painted_in_a_browser_and_again() -> None:
    """By a finger and by keys, on two ranks; the record repeats the run."""
    Path("painted.toml").write_text(PAINTED)
    with running("run", "painted.toml", "--serve", "--set", "run.threads=1") as process, chromium() as browser:
        page = browser.open(address(process), width=360)
        page.until("!document.getElementById('fresh').hidden && document.getElementById('fresh').clientWidth > 0")
        assert page.evaluate("document.documentElement.scrollWidth <= 360")
        assert text(page, "brushes") == "state 0state 1"
        page.evaluate(DRAG)
        page.until("document.getElementById('painted').textContent === '5 cells sent to the run'")
        page.evaluate("document.getElementById('fresh').focus()")
        for key in ("1", "ArrowUp", "ArrowRight", " "):
            page.evaluate(
                f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))"
            )
        page.until("document.getElementById('painted').textContent === '1 cell sent to the run'")
        edits = Path("runs/painted/edits.jsonl")
        wait_for_lines(edits, 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
    lines = [json.loads(line) for line in edits.read_text().splitlines()]
    assert sorted(lines[0]["cells"]) == [[14, 10, 1], [14, 11, 1], [14, 12, 1], [14, 13, 1], [15, 13, 1]]
    assert lines[1]["cells"] == [[14, 14, 1]]
    assert lines[1]["step"] > lines[0]["step"]
    found = json.loads(Path("runs/painted/result.json").read_text())
    again = [
        "--set",
        f"run.steps={found['steps']}",
        "--set",
        "output.every=1000000",
        "--set",
        "run.paint=false",
        "--set",
        f"run.edits={edits.resolve()}",
    ]
    said = in_process("run", "painted.toml", "--ranks", 1, "--out", "again", *again)
    assert said.status == 0, said.err
    assert json.loads(Path("again/result.json").read_text())["digest"] == found["digest"]


def test_a_page_shows_names_as_they_are() -> None:
    """What a case says is text, never markup."""
    name = "<img src=x onerror=document.title='bad'><b>bold</b>"
    assert in_process("run", "small.toml", "--set", f'name="{name}"', "--out", "odd").status == 0
    Path("odd/series.json").write_text(json.dumps({"step": [0, 1], "<i>x</i>": [1, 2]}))
    with running("watch", "odd") as process, chromium() as browser:
        page = browser.open(address(process))
        page.until("document.body.dataset.ready")
        assert text(page, "name") == name
        assert page.evaluate("document.querySelector('figcaption span').textContent") == "<i>x</i>"
        assert page.evaluate("document.querySelectorAll('h1 *, figcaption i').length") == 0
        assert "bad" not in page.evaluate("document.title").replace(name, "")
        page.until("document.getElementById('state').textContent === 'finished'")
        page.until("document.getElementById('picture').naturalWidth === 64")
        assert page.evaluate("document.getElementById('report').hidden")


PACED = """\
import time
import numpy as np
import minga as mg
run = {"steps": 250, "ranks": 1}
output = {"every": 100, "pictures": 0, "report": False}

@mg.kernel
def diffuse(u, new):
    new[0, 0] = u[0, 0] + 0.2 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])

@mg.kernel
def look(u):
    return {"warmth": mg.sum(u[0, 0])}

def model(shape=(60, 80), *, pause=0.0):
    grid = mg.Grid(shape, periodic=True)
    u = mg.Field("u", grid, slots=2)
    step, observe = mg.Program("step"), mg.Program("observe")
    step.apply(diffuse, u, u.next)
    step.rotate(u)
    if pause:
        step.call(lambda engine: time.sleep(pause), reads=[u], writes=[u])
    seen = observe.apply(look, u)
    return mg.Model(
        name="paced", grid=grid, fields=(u,), step=step, initial={"u": np.random.default_rng(1).random(shape)},
        observe=observe, observables=vars(seen),
    )
"""


@pytest.mark.slow  # the same on ranks is not
def test_a_watched_run_has_the_same_bits() -> None:
    """Watched from the beginning, by a page that is closed, and by one whose server is killed in the middle."""
    Path("paced.py").write_text(PACED)
    alone = json.loads(in_process("run", "paced.py", "--json").out)
    with running("run", "paced.py", "--set", "parameters.pause=0.02", "--json", "--serve") as run:
        page = address(run)
        wait(page, "state['picture'] and state['picture']['live']")
        with running("watch", "runs/paced-2") as watcher:
            state(address(watcher))
            watcher.kill()
            watcher.communicate()
        out, err = run.communicate(timeout=120)
    assert run.returncode == 0, err
    result = json.loads(out)
    assert result["run"] == "runs/paced-2"
    assert (result["digest"], result["observables"]) == (alone["digest"], alone["observables"])
    over = state(page)
    assert (over["progress"]["state"], over["result"]["digest"]) == ("finished", alone["digest"])


@pytest.mark.slow
@pytest.mark.mpi
def test_a_watched_run_on_ranks_has_the_same_bits() -> None:
    """Watched from the beginning, and by a page whose server is killed in the middle."""
    Path("paced.py").write_text(PACED)
    alone = json.loads(in_process("run", "paced.py", "--json").out)
    with running("run", "paced.py", "-n", 2, "--set", "parameters.pause=0.02", "--json", "--serve") as run:
        page = address(run)
        found = wait(page, "state['ledger']['count'] and state['picture'] and state['picture']['live']")
        assert [entry["rank"] for entry in found["ledger"]["ranks"]] == [0, 1]
        with running("watch", "runs/paced-2") as watcher:
            state(address(watcher))
            watcher.kill()
            watcher.communicate()
        out, err = run.communicate(timeout=120)
    assert run.returncode == 0, err
    assert json.loads(out)["digest"] == alone["digest"]


@pytest.mark.slow
def test_a_run_that_fails_says_why_on_the_page() -> None:
    Path("explosion.py").write_text("""\
import minga as mg
run = {"steps": 300000, "ranks": 1}
output = {"every": 100000, "report": False}

@mg.kernel
def grow(u, new):
    new[0, 0] = u[0, 0] + 1e303

def model():
    grid = mg.Grid((4, 4))
    u = mg.Field("u", grid, slots=2)
    step = mg.Program("step")
    step.apply(grow, u, u.next)
    step.rotate(u)
    return mg.Model(name="x", grid=grid, fields=(u,), step=step, initial={"u": 1.0})
""")
    with running("run", "explosion.py", "--serve") as process:
        page = address(process)
        process.communicate(timeout=60)
        assert process.returncode == 1
        found = state(page)
    assert (found["progress"]["state"], found["over"]) == ("failed", True)
    assert "not finite" in found["progress"]["reason"]
    assert json.loads(Path("runs/explosion/progress.json").read_text())["state"] == "failed"


@pytest.mark.slow
def test_the_newest_run_is_watched_where_none_is_named() -> None:
    for name in ("first", "second"):
        assert in_process("run", "small.toml", "--out", f"runs/{name}").status == 0
    with running("watch") as process:
        assert state(address(process))["run"] == "runs/second"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("watch", "nowhere"), "not a run directory"),
        (("watch", "small.toml"), "not a run directory"),
        (("watch",), "there is no run in runs"),
        (("watch", "a", "b"), "extra argument"),
        (("watch", "--port", "x"), "--port"),
        (("watch", "--port", "70000"), "--port"),
        (("watch", "--port", "-1"), "--port"),
    ],
)
def test_what_cannot_be_watched_is_said(in_tmp_path: Path, words: tuple[str, ...], text: str) -> None:
    with nothing_written(in_tmp_path):
        said = in_process(*words)
    assert (said.status, said.out) == (2, "")
    assert text in said.err
    assert "Traceback" not in said.err


@pytest.mark.slow
def test_a_port_that_is_taken() -> None:
    assert in_process("run", "small.toml", "--out", "run").status == 0
    with running("watch", "run") as process:
        port = address(process).split(":")[2].split("/")[0]
        said = in_process("watch", "run", "--port", port)
    assert said.status == 2
    assert f"port {port}" in said.err


def test_a_server_that_cannot_start_does_not_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minga.cli.watch.PATIENCE", "no number")
    monkeypatch.setattr("minga.cli.watch.sys.executable", "/bin/false")
    said = in_process("run", "small.toml", "--serve", "--json")
    assert said.status == 0
    assert json.loads(said.out)["steps"] == 10
    assert "the live page could not be started" in said.err
