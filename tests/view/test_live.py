"""The server of the live page: who may ask, what it answers for runs in every state, and that it never disturbs one."""

from __future__ import annotations

import base64
import http.client
import json
import math
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from live_server import serving
from minga.errors import CaseError
from minga.output.directory import RunDirectory
from minga.output.edits import Canvas, Wishes
from minga.output.preview import Preview, write_preview
from minga.output.progress import ProgressFile, note_state
from minga.output.store import FrameStore
from minga.output.variables import LEFT_OUT, Coordinate, Variable
from minga.view.live.server import LiveServer
from minga.view.live.state import RunReader

CASE = 'name = "quiet"\nmodel = "automaton"\n[grid]\nshape = [4, 6]\n[automaton]\nrule = "B3/S23"\n[run]\nsteps = 10\n'


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def image(self) -> np.ndarray:
        return np.asarray(PIL.Image.open(BytesIO(self.content)).convert("RGB"))


def ask(server: LiveServer, page: str, *, method: str = "GET", token: str | None = None, host: str = "") -> Answer:
    port = server.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Host": host or f"127.0.0.1:{port}"}
    connection.request(method, f"/{server.token if token is None else token}{page}", headers=headers)
    answer = connection.getresponse()
    try:
        return Answer(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


def write_frames(run: RunDirectory, fields: dict[str, np.ndarray], steps: list[int], **attrs: str) -> None:
    """Frames of fields of shape (frames, ...)."""

    def coordinates(name: str, shape: tuple[int, ...]) -> tuple[Coordinate, ...]:
        return tuple(Coordinate(f"{name}_{k}", np.arange(n) + 0.5, {}) for k, n in enumerate(shape))

    variables = [Variable(name, a.dtype, coordinates(name, a.shape[1:]), {"units": "1"}) for name, a in fields.items()]
    store = FrameStore(run.fields, variables, attrs)
    for number, step in enumerate(steps):
        store.append(step, {name: array[number] for name, array in fields.items()})


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run that is going on: two frames of Life's cells, step 7 of 10."""
    run = RunDirectory(tmp_path / "quiet")
    run.path.mkdir()
    run.case.write_text(CASE)
    cells = np.zeros((2, 4, 6), np.uint8)
    cells[1, 2, 3] = 1
    write_frames(run, {"cell": cells}, [0, 5])
    ProgressFile(run, 10, 24, 2).running(7, 2.0, 7)
    return run


@pytest.fixture
def server(run: RunDirectory) -> Iterator[LiveServer]:
    with serving(run) as server:
        yield server


# Who may ask ---------------------------------------------------------------------------------------------------------
def test_only_this_machine_can_reach_it(server: LiveServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) >= 20


def test_every_server_has_a_token_of_its_own(run: RunDirectory) -> None:
    with LiveServer(run) as one, LiveServer(run) as other:
        assert one.token != other.token
        assert one.address == f"http://127.0.0.1:{one.server_address[1]}/{one.token}/"


@pytest.mark.parametrize("token", ["", "x", "state", "%00", "../", "?", "a" * 5000])
def test_without_the_token_nothing_is_told(server: LiveServer, token: str) -> None:
    for wrong in (token, server.token[:-1] + token, token + "x" + server.token):
        for page in ("/", "/state", "/picture?key=cell-1-5"):
            answer = ask(server, page, token=wrong)
            assert answer.status == 403
            assert b"quiet" not in answer.content


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:80", "evil.example:127.0.0.1", "[", "0.0.0.0"]
)
def test_a_page_of_another_site_cannot_reach_it_by_its_own_name(server: LiveServer, host: str) -> None:
    assert ask(server, "/state", host=host).status == 403


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "localhost:9000", "[::1]:80", "[::1]"])
def test_a_tunnel_may_have_another_port(server: LiveServer, host: str) -> None:
    assert ask(server, "/state", host=host).status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"])
def test_it_only_answers_get(server: LiveServer, method: str) -> None:
    assert ask(server, "/state", method=method).status == 501


@pytest.mark.parametrize(
    "page", ["/../case.toml", "/case.toml", "/%2e%2e/", "/page.html/", "/state/x", "/frame", "/picture"]
)
def test_there_is_nothing_else(server: LiveServer, page: str) -> None:
    assert ask(server, page).status == 404


def test_a_browser_gets_strict_rules(server: LiveServer) -> None:
    for page in ("/", "/page.js", "/paint.js", "/page.css", "/palette.css", "/state"):
        answer = ask(server, page)
        assert answer.status == 200
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"
    assert b"http" not in ask(server, "/").content.replace(b"<!doctype html>", b"")  # nothing from elsewhere


def test_a_port_that_is_taken_is_said(server: LiveServer) -> None:
    with pytest.raises(CaseError, match="Address already in use"):
        LiveServer(server.reader.directory, server.server_address[1])


@pytest.mark.few(2)
@pytest.mark.parametrize("said", [b"", b"GET /", b"GET /" + b"x" * 999])
def test_strangers_that_say_nothing_keep_nobody_out(server: LiveServer, said: bytes) -> None:
    """Without the token they have no part in what there is for those who know it, however many they are."""
    silent = []
    for _ in range(2):
        for _ in range(70):
            silent.append(socket.create_connection(server.server_address[:2]))
            silent[-1].sendall(said)
        assert ask(server, "/state").status == 200
    for connection in silent:
        connection.close()


def test_a_stranger_has_seconds_not_one_for_each_byte(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minga.view.live.server._PATIENCE", 0.2)
    with serving(run) as server, socket.create_connection(server.server_address[:2]) as slow:
        slow.settimeout(60)
        end = time.monotonic() + 60
        closed = False
        while not closed and time.monotonic() < end:
            time.sleep(0.05)
            try:
                slow.sendall(b"G")
            except OSError:
                closed = True
        assert closed
        assert ask(server, "/state").status == 200


def test_the_token_comes_first(server: LiveServer) -> None:
    """A wrong first line is answered at once: nobody reads what a stranger says after it."""
    with socket.create_connection(server.server_address[:2]) as stranger:
        stranger.settimeout(60)
        stranger.sendall(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n")  # and no end of it
        assert stranger.recv(1000).startswith(b"HTTP/1.1 403 ")
        while stranger.recv(1000):
            pass


def test_too_many_browsers_are_told_so(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minga.view.live.server._MOST_MEMBERS", 3)
    with serving(run) as server:
        port = server.server_address[1]
        open_pages = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(3)]
        for page in open_pages * 2:  # each keeps its connection
            page.request("GET", f"/{server.token}/page.css")
            answer = page.getresponse()
            assert answer.status == 200
            answer.read()
        assert ask(server, "/state").status == 503
        for page in open_pages:
            page.close()
        end = time.monotonic() + 60
        while (status := ask(server, "/state").status) == 503 and time.monotonic() < end:
            time.sleep(0.01)
        assert status == 200


# Painting ------------------------------------------------------------------------------------------------------------
CELLS = b'{"field": "cell", "cells": [[2, 3, 1], [0, 5, 0]]}'


def paint(server: LiveServer, content: bytes = CELLS, page: str = "/paint", host: str = "", **headers: str) -> Answer:
    port = server.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    given = {"Host": host or f"127.0.0.1:{port}", "Origin": f"http://127.0.0.1:{port}"}
    given |= {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", f"/{server.token}{page}", body=content, headers=given)
    answer = connection.getresponse()
    try:
        return Answer(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


@pytest.fixture
def wishes(run: RunDirectory) -> Wishes:
    return Wishes(run.painting, Canvas((4, 6), {"cell": 2}))


def test_a_page_may_paint_where_the_run_allows_it(server: LiveServer, run: RunDirectory) -> None:
    assert ask(server, "/state").json["paint"] is None
    refused = paint(server)
    assert (refused.status, refused.content) == (400, b"this run cannot be painted: run.paint = true allows it\n")
    wishes = Wishes(run.painting, Canvas((4, 6), {"cell": 2}))
    assert ask(server, "/state").json["paint"] == {"shape": [4, 6], "states": {"cell": 2}, "refused": ""}
    assert paint(server).status == 200
    (edit,) = wishes.new(7)
    assert (edit.step, edit.field) == (7, "cell")
    assert (edit.points.tolist(), edit.states.tolist()) == ([[2, 3], [0, 5]], [1, 0])
    assert wishes.new(8) == []
    note_state(run, "finished", None)
    assert paint(server).status == 400
    assert ask(server, "/state").json["paint"] is None


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": ""}, {"Origin": "http://127.0.0.1:1"},
        {"Content_Type": "text/plain"}, {"Content_Type": "application/x-www-form-urlencoded"}, {"Content_Type": ""},
        {"host": "evil.example", "Origin": "http://evil.example"}, {"page": "/paint/x"}, {"page": "/state"},
        {"page": "/../paint"},
    ],
)  # fmt: skip
def test_nobody_else_can_paint(server: LiveServer, wishes: Wishes, headers: dict[str, Any]) -> None:
    """Forms and scripts of other sites send another origin, or none, or a type that needs no permission."""
    assert paint(server, **headers).status == 403
    assert wishes.new(0) == []


def test_without_the_token_nobody_paints(server: LiveServer, wishes: Wishes) -> None:
    with socket.create_connection(server.server_address[:2]) as stranger:
        stranger.settimeout(60)
        stranger.sendall(b"POST /nothing/paint HTTP/1.1\r\nContent-Length: 5\r\n\r\n" + CELLS)
        assert stranger.recv(1000).startswith(b"HTTP/1.1 403 ")
    assert wishes.new(0) == []


def test_lengths_with_zeros_before_them_do_not_hide_that_they_are_large(server: LiveServer, wishes: Wishes) -> None:
    with socket.create_connection(server.server_address[:2]) as browser:
        browser.settimeout(60)
        host = f"127.0.0.1:{server.server_address[1]}"
        lines = [
            f"POST /{server.token}/paint HTTP/1.1", f"Host: {host}", f"Origin: http://{host}",
            "Content-Type: application/json", f"Content-Length: {'0' * 9}{'9' * 12}", "", "",
        ]  # fmt: skip
        browser.sendall("\r\n".join(lines).encode() + CELLS)
        assert browser.recv(1000).startswith(b"HTTP/1.1 413 ")
    assert wishes.new(0) == []


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400), (b"x", 400), (b"[]", 400), (b"\xff", 400), (b"[" * 100_000, 400), (CELLS.replace(b"3", b"6"), 400),
        (CELLS.replace(b"cell", b"u", 1), 400), (CELLS.replace(b"1", b"2"), 400), (CELLS.replace(b"1", b"1e0"), 400),
        (b" " * 200_000, 413), (CELLS.replace(b"1", b"9" * 5000), 400),
    ],
)  # fmt: skip
def test_what_is_no_edit_is_refused(server: LiveServer, wishes: Wishes, content: bytes, status: int) -> None:
    assert paint(server, content).status == status
    assert wishes.new(0) == []


def test_a_wish_is_read_when_it_is_complete(server: LiveServer, run: RunDirectory, wishes: Wishes) -> None:
    line = b'{"step":0,"field":"cell","cells":[[1,1,1]]}\n'
    with run.painting.open("ab", buffering=0) as lines:
        lines.write(b"nothing\n" + line[:20])
        assert wishes.new(1) == []
        lines.write(line[20:])
    assert [edit.points.tolist() for edit in wishes.new(2)] == [[[1, 1]]]


# What it says --------------------------------------------------------------------------------------------------------
def test_a_running_run(server: LiveServer, run: RunDirectory) -> None:
    (run.path / "series.json").write_text(
        json.dumps({"step": [0, 5], "population": [0, 1], "histogram": [[24, 0], [23, 1]]})
    )
    entry = {"rank": 0, "host": "h", "seconds": {"compute": 1.5}, "messages": 3, "bytes": 99}
    run.ledger.write_text(json.dumps({"ranks": [entry, entry | {"rank": 1}]}))
    state = ask(server, "/state").json
    assert state["name"] == "quiet"
    assert dict(state["about"]) == {"model": "automaton", "rule": "B3/S23", "grid": "4 × 6"}
    progress = state["progress"]
    assert (progress["state"], progress["step"], progress["steps"], progress["rate"]) == ("running", 7, 10, 84.0)
    assert 0 <= progress["age"] < 60
    assert not state["over"]
    assert (state["frames"], state["times"]) == ([[0, 0], [1, 5]], ["", ""])
    assert state["series"] == {
        "step": [0, 5],
        "curves": [["population", [["", [0, 1]]]], ["histogram", [["0", [24, 23]], ["1", [0, 1]]]]],
    }
    assert (state["ledger"]["messages"], state["ledger"]["bytes"], state["ledger"]["count"]) == (6, 198, 2)
    picture = state["picture"]
    assert (picture["field"], picture["step"], picture["live"], picture["aspect"]) == ("cell", 5, False, 1.5)
    image = ask(server, f"/picture?key={picture['key']}").image
    assert image.shape == (4, 6, 3)
    dark = (image != image[0, 0]).any(axis=2)
    assert np.argwhere(dark).tolist() == [[2, 3]]
    assert picture["legend"][1][1] == "#{:02x}{:02x}{:02x}".format(*image[2, 3])
    assert (ask(server, "/frame?field=cell&index=0").image == image[0, 0]).all()
    for wrong in ("cell&index=2", "cell&index=-1", "cell&index=x", "u&index=0", "cell&index=99999999999999999999"):
        assert ask(server, f"/frame?field={wrong}").status == 404


def test_the_preview_is_shown_while_it_is_newer(server: LiveServer, run: RunDirectory) -> None:
    write_preview(run, Preview("cell", 7, 1, np.eye(4, 6, dtype=np.uint8)))
    picture = ask(server, "/state").json["picture"]
    assert (picture["live"], picture["step"]) == (True, 7)
    image = ask(server, f"/picture?key={picture['key']}").image
    assert ((image != image[0, 1]).any(axis=2) == np.eye(4, 6)).all()
    write_preview(run, Preview("cell", 4, 1, np.eye(4, 6, dtype=np.uint8)))
    assert ask(server, "/state").json["picture"]["step"] == 5
    write_preview(run, Preview("cell", 8, 1, np.eye(4, 6, dtype=np.uint8)))
    note_state(run, "finished")
    assert ask(server, "/state").json["picture"]["live"] is False


def test_it_gives_a_sign_only_while_somebody_looks_at_a_run_that_goes_on(server: LiveServer, run: RunDirectory) -> None:
    before = sorted(run.path.iterdir())
    ask(server, "/")
    ask(server, "/state?look=0")
    assert sorted(run.path.iterdir()) == before
    ask(server, "/state?look=1&field=cell")
    assert run.watching.read_text() == "cell\n"
    note_state(run, "finished")  # and what it removed at its end came back a moment later
    ask(server, "/state?look=1")
    assert sorted(run.path.iterdir()) == before


@pytest.mark.slow
def test_fields_of_every_kind(run: RunDirectory) -> None:
    rng = np.random.default_rng(1)
    fields = {
        "line": rng.integers(0, 2, (3, 40), dtype=np.uint8),
        "curve": rng.random((3, 40)),
        "plane": np.array([[[0.0, np.nan], [1.0, np.inf]]] * 3),
        "solid": rng.random((3, 5, 4, 6)),
        "large": rng.integers(0, 9, (3, 1500, 30), dtype=np.int32),
    }
    for path in sorted(run.fields.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    run.fields.rmdir()
    write_frames(run, fields, [0, 5, 9])
    shapes = {"line": (3, 40), "curve": (3, 40), "plane": (2, 2), "solid": (4, 6), "large": (1024, 20)}
    with serving(run) as server:
        for name, shape in shapes.items():
            state = ask(server, f"/state?field={name}").json
            assert state["picture"]["field"] == name
            assert ask(server, f"/picture?key={state['picture']['key']}").image.shape[:2] == shape
            assert ask(server, f"/frame?field={name}&index=1").status == 200


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", '{"step": 3}', '{"ranks": 5}', '{"step": [1], "x": NaN}', "\x00" * 9]
)
def test_files_that_are_broken_are_left_out(server: LiveServer, run: RunDirectory, text: str) -> None:
    for path in (run.series, run.ledger, run.result, run.progress, run.preview):
        path.write_text(text)
    answer = ask(server, "/state")
    assert answer.status == 200
    assert answer.json["progress"]["state"] in ("starting", "running")
    run.case.write_text("not TOML")
    assert ask(server, "/state").json["name"] == "quiet"


def test_a_run_that_is_only_just_starting(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.case.write_text(CASE)
    with serving(RunDirectory.open_early(tmp_path)) as server:
        state = ask(server, "/state?look=1").json
        assert (state["progress"]["state"], state["picture"], state["fields"]) == ("starting", None, [])
        run.fields.mkdir()
        assert ask(server, "/state").json["picture"] is None
        run.fields.rmdir()
        write_frames(run, {"u": np.zeros((1, 3, 3))}, [0])
        assert ask(server, "/state").json["picture"]["field"] == "u"


def test_a_run_without_frames_is_no_run(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(CaseError, match="not a run directory"):
            RunDirectory.open_early(path)


def test_a_run_whose_process_is_gone_is_lost(server: LiveServer, run: RunDirectory) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    progress = json.loads(run.progress.read_text())
    run.progress.write_text(json.dumps(progress | {"pid": process.pid}))
    state = ask(server, "/state").json
    assert (state["progress"]["state"], state["over"]) == ("lost", True)
    assert "gone" in state["progress"]["reason"]
    run.progress.write_text(json.dumps(progress | {"pid": process.pid, "host": "another machine", "system": "its own"}))
    assert ask(server, "/state").json["progress"]["state"] == "running"
    elsewhere = {"host": "another machine", "system": "its own", "updated": 0.0}
    run.progress.write_text(json.dumps(progress | elsewhere))
    os.utime(run.progress, (0.0, 0.0))
    assert ask(server, "/state").json["progress"]["state"] == "lost"


def test_a_directory_that_was_removed_ends_it(server: LiveServer, run: RunDirectory) -> None:
    run.path.rename(run.path.with_name("elsewhere"))
    assert ask(server, "/state").json["over"]


def test_the_report_is_served_when_it_is_there(server: LiveServer, run: RunDirectory) -> None:
    assert ask(server, "/report.html").status == 404
    assert not ask(server, "/state").json["report"]
    run.report.write_text("<p>report</p>")
    assert ask(server, "/state").json["report"]
    answer = ask(server, "/report.html")
    assert answer.content == b"<p>report</p>"
    assert "connect-src" not in answer.headers["Content-Security-Policy"]  # so nothing: default-src 'none'


def test_very_many_ranks_steps_and_frames_stay_small(server: LiveServer, run: RunDirectory) -> None:
    entry = {"seconds": {"compute": 1.0}, "messages": 1, "bytes": 2}
    run.ledger.write_text(json.dumps({"ranks": [entry | {"rank": rank} for rank in range(5000)]}))
    run.series.write_text(json.dumps({"step": list(range(100000)), "population": list(range(100000))}))
    answer = ask(server, "/state")
    assert len(answer.content) < 50_000
    state = answer.json
    assert (state["ledger"]["count"], state["ledger"]["messages"]) == (5000, 5000)
    assert len(state["ledger"]["ranks"]) <= 64
    assert state["series"]["step"][-1] == 99999


def test_the_surface_of_a_solid_follows_the_frames(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "deposit")
    run.path.mkdir()
    run.case.write_text(CASE)
    kinds = np.zeros((2, 3, 4, 5), np.uint8)
    kinds[0, 0, 1, 2] = kinds[1, :2, 1, 2] = 1
    write_frames(run, {"kind": kinds}, [0, 5], **{LEFT_OUT: "kind"})
    with serving(run) as server:
        assert ask(server, "/state").json["scene"] == 2
        found = ask(server, "/scene").json["solid"]
        for script in ("solid.js", "sections.js", "scene.js"):
            assert b"function" in ask(server, f"/{script}").content
    assert (found["shape"], found["steps"]) == ([3, 4, 5], [0, 5])
    born = np.frombuffer(base64.b64decode(found["born"]), np.uint8).reshape(3, 4, 5)
    assert np.array_equal(born, kinds[0] + 2 * (kinds[1] - kinds[0]))


def test_a_run_in_a_plane_has_no_scene(server: LiveServer) -> None:
    assert ask(server, "/state").json["scene"] == 0
    assert ask(server, "/scene").json is None


def test_a_scene_is_drawn_seldom_while_a_run_continues(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "heat")
    run.path.mkdir()
    run.case.write_text(CASE)
    reader = RunReader(run)
    axes = tuple(Coordinate(name, np.arange(4.0) + 0.5, {}) for name in "zyx")
    store = FrameStore(run.fields, [Variable("T", np.dtype("f8"), axes, {"units": "K"})], {})
    store.append(0, {"T": np.ones((4, 4, 4))})
    assert reader.state()["scene"] == 1
    shown = reader.scene()
    assert b"step 0" in shown
    store.append(5, {"T": np.ones((4, 4, 4))})
    reader._next_scene = math.inf
    assert reader.state()["scene"] == 1
    assert reader.scene() is shown  # also for a page that is opened now
    reader._next_scene = 0.0
    assert reader.state()["scene"] == 2
    assert b"step 5" in reader.scene()


# Its life ------------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_it_goes_when_the_run_is_over_and_nobody_looks(run: RunDirectory) -> None:
    words = [sys.executable, "-m", "minga.view.live", str(run.path), "0.3"]
    started = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)  # returns: it is in the background
    port, token = started.stdout.strip().removeprefix("http://127.0.0.1:").rstrip("/").split("/")

    def answers() -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
        try:
            connection.request("GET", f"/{token}/state")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    time.sleep(1)
    assert answers()  # the run goes on
    note_state(run, "finished")
    end = time.monotonic() + 120
    while answers() and time.monotonic() < end:
        time.sleep(1)  # longer than the server's patience: who asks keeps it there
    assert not answers()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere; run the tests as another user")
def test_a_directory_that_cannot_be_written_is_shown_all_the_same(server: LiveServer, run: RunDirectory) -> None:
    run.path.chmod(0o500)
    assert ask(server, "/state?look=1").status == 200
    run.path.chmod(0o700)
