"""`minga bench tinetti`: what is said of results, what makes a statement hold, and (slow, as root) the experiments."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from command_line import in_process
from minga.errors import CaseError, LaunchError, RunError
from minga.lab.cluster import Rights
from minga.studies import changing, experiments, report
from minga.studies.experiments import Bench
from minga.studies.figures import draw_panels, panel
from minga.studies.tinetti import broadcasts, labs, memory, messages, pvm, study, work
from minga.studies.tinetti.labs import payload_rate
from missing import missing

RATE = 10e6


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labs, "lab_rights", lambda: Rights(rootless=False, version=1))


def pretend(monkeypatch: pytest.MonkeyPatch, result: dict[str, Any], busy: float | None = 0.0) -> None:
    """An experiment E6 that finds this, on a machine of which others use so many cores."""
    monkeypatch.setattr(study, "EXPERIMENTS", {**study.EXPERIMENTS, "E6": ("Ping", lambda bench: result)})
    monkeypatch.setattr(experiments, "busy_cores", lambda: busy)


FOUND: dict[str, Any] = {
    "claim": "about 1 ms",
    "panels": [panel([8, 1000], {"one": [1.0, None]}, "bytes", "ms", logarithmic="xy", bands={"1 ms": (0.5, 2.0)})],
    "shape": {"it is flat": True},
}


@pytest.mark.usefixtures("as_root")
def test_tables_figures_and_a_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, FOUND)
    out, page, pictures = tmp_path / "found.json", tmp_path / "page.html", tmp_path / "pictures"
    said = in_process(
        "bench", "tinetti", "--only", "E6", "-o", str(out), "--html", str(page), "--pictures", str(pictures)
    )
    assert said.status == 0, said.err
    assert "  the paper: about 1 ms\n" in said.out
    assert "  one         1       -" in said.out
    assert "[holds] it is flat" in said.out
    assert json.loads(out.read_text())["experiments"]["E6"]["shape"] == {"it is flat": True}
    assert (pictures / "tinetti-E6.png").read_bytes()[:4] == b"\x89PNG"
    assert "<blockquote>about 1 ms</blockquote>" in page.read_text()
    assert "data:image/png;base64," in page.read_text()


@pytest.mark.usefixtures("as_root")
def test_what_does_not_hold_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {**FOUND, "shape": {"pigs fly": False}})
    said = in_process("bench", "tinetti", "--only", "E6")
    assert said.status == 1
    assert "does not hold: E6: pigs fly" in said.err


@pytest.mark.usefixtures("as_root")
def test_nothing_is_judged_while_others_use_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {**FOUND, "shape": {"pigs fly": False}}, busy=float(os.cpu_count() or 1))
    said = in_process("bench", "tinetti", "--only", "E6")
    assert said.status == 0
    assert "not judged: other programs kept" in said.out
    assert "[does not hold] pigs fly" in said.out


@pytest.mark.usefixtures("as_root")
def test_what_is_left_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"claim": "slow", "left out": "PVM is not installed", "shape": {}})
    said = in_process("bench", "tinetti", "--only", "E6")
    assert said.status == 0
    assert "left out: PVM is not installed" in said.out


@pytest.mark.usefixtures("as_root")
def test_an_experiment_that_fails_does_not_take_the_others_along(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(bench: Bench) -> dict[str, Any]:
        raise RunError("the ranks ended with status 1")

    pretend(monkeypatch, FOUND)
    monkeypatch.setattr(study, "EXPERIMENTS", {**study.EXPERIMENTS, "E5": ("Buffers", fails)})
    out = tmp_path / "found.json"
    page = str(tmp_path / "page.html")
    said = in_process("bench", "tinetti", "--only", "E5", "--only", "E6", "-o", str(out), "--html", page)
    assert said.status == 1
    assert "failed: the ranks ended with status 1" in said.out
    assert "does not hold: E5: it comes to its end" in said.err
    stored = json.loads(out.read_text())["experiments"]["E6"]
    assert stored["shape"] == {"it is flat": True}
    assert "picture" not in stored  # which was drawn for the page alone


@pytest.mark.parametrize(("option", "file"), [("-o", "nowhere/found.json"), ("--html", "nowhere/page.html")])
def test_files_are_looked_at_before_anything_is_measured(option: str, file: str) -> None:
    said = in_process("bench", "tinetti", option, file)
    assert said.status == 2
    assert f"{file} cannot be written" in said.err


def test_an_unknown_experiment() -> None:
    said = in_process("bench", "tinetti", "--only", "E15")
    assert said.status == 2
    assert "there is no experiment 'E15'" in said.err


def test_only_root_has_such_labs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labs, "lab_rights", lambda: Rights(rootless=True, version=2))
    said = in_process("bench", "tinetti", "--only", "E6")
    assert said.status != 0
    assert "run it as root" in said.err


def test_all_experiments_have_their_numbers() -> None:
    assert tuple(f"E{k}" for k in range(1, 15)) == study.NAMES


# Statements -----------------------------------------------------------------------------------------------------------
SIZE = 1_000_000


def wire(size: int) -> float:
    """Seconds that the wire takes for a message."""
    return size / payload_rate(RATE, "tcp")


def times_of(ours: float, other: float) -> dict[str, Any]:
    """Least seconds by way and receivers; a receiver adds so many parts of the wire's time."""
    counts = (1, 3, 7, 13)

    def row(base: float, added: float) -> dict[int, dict[int, float]]:
        return {m: {size: wire(size) * (base + added * (m - 1)) for size in (60_000, SIZE)} for m in counts}

    return {"minga.broadcast": row(1.02, ours), "MPICH": row(1.05, other), "PVM": row(1.05, 1.0)}


def test_statements_on_broadcasts() -> None:
    shape = broadcasts._shape_of_many(times_of(0.002, 1.05), SIZE, RATE)
    assert all(shape.values()), shape
    slow = broadcasts._shape_of_many(times_of(0.06, 0.5), SIZE, RATE)
    assert [text for text, holds in slow.items() if not holds] == [
        "minga.broadcast: 1000000 bytes to 3, 7, 13 receivers take as long as to one, within a tenth",
        "minga.broadcast: a receiver adds at most 0.05 of the wire's time",
        "minga.broadcast: 0.9 of the wire's payload rate",
        "MPICH: each receiver adds at least 0.9 of the wire's time at 60000 bytes",
        "MPICH: each receiver adds at least 0.9 of the wire's time at 1000000 bytes",
    ]


def test_statements_on_messages_that_did_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is said to hold of them, and what is found can be stored."""
    lab = SimpleNamespace(names=("root", "one", "two", "three"))
    monkeypatch.setattr(messages, "laboratory", lambda lab_: nullcontext(lab))
    monkeypatch.setattr(messages, "team_of", nullcontext)
    times = {node: [2e-3, 2e-3, 2.5e-3, 9e-3, 26e-3, 51.6e-3] for node in (1, 2, 3)}
    monkeypatch.setattr(messages, "one_way", lambda team, lab_, node, *rest: times[node])
    assert all(messages.ping(Bench(print, quick=True))["shape"].values())
    times[2] = [None] * 6
    shape = messages.ping(Bench(print, quick=True))["shape"]
    assert list(shape.values()) == [True, True, False]
    times[1] = [None] * 6
    found = messages.ping(Bench(print, quick=True))
    assert not any(found["shape"].values())
    json.dumps(found, allow_nan=False)


def test_without_any_mpi_broadcasts_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(print, quick=True)
    monkeypatch.setattr(Bench, "libraries", lambda self: ([], {"MPICH": "it was not found"}))
    for experiment in (broadcasts.networks, broadcasts.switched):
        assert experiment(bench)["left out"] == {"MPICH": "it was not found"}


def test_a_share_that_cannot_be_given_is_an_error_and_no_hang(tmp_path: Path) -> None:
    def refuse(node: int, share: float) -> None:
        raise LaunchError("the quota cannot be set")

    def ranks(flag: Path) -> None:
        flag.touch()
        until = time.monotonic() + 30
        while flag.exists():
            assert time.monotonic() < until, "the ranks would wait for ever"
            time.sleep(1e-3)

    cluster: Any = SimpleNamespace(set_share=refuse)
    with pytest.raises(LaunchError, match="quota cannot be set"), changing.obeying(cluster, tmp_path, {"halved": 0.1}):
        ranks(tmp_path / "halved")


def test_statements_on_products() -> None:
    def runs(rows: float, equal: float) -> list[dict[str, Any]]:
        seconds = {"rows": (rows, 1.0), "equal": (equal, 2.0), "alone": (2.1, 2.0)}
        return [
            {"size": 9, "layout": name, "seconds": spent, "predicted": said} for name, (spent, said) in seconds.items()
        ]

    assert all(work._shape_of_products({"hub": runs(1.1, 2.1)}, {"hub": 5.0}).values())
    shape = work._shape_of_products({"hub": runs(1.2, 1.3)}, {"hub": 5.0})
    assert list(shape.values()) == [False, True, False]


def test_rates_of_the_wire() -> None:
    assert payload_rate(RATE, "tcp") == pytest.approx(1.177e6, rel=1e-3)
    assert payload_rate(RATE, "udp") > payload_rate(RATE, "tcp")


# Parts ----------------------------------------------------------------------------------------------------------------
def test_bars_and_curves_are_drawn(tmp_path: Path) -> None:
    bars = panel([0, 1], {"a": [1.0, 2.0], "b": [None, 1.0]}, "", "s", labels=["one way", "another way"])
    file = draw_panels([bars, *FOUND["panels"]], tmp_path / "two.svg", title="both", claim="words " * 40)
    assert "another" in file.read_text()
    assert report.body({"panels": [bars]})[1].split() == ["one", "way", "1", "-"]


@pytest.mark.parametrize("encoding", memory.ENCODINGS)
def test_messages_arrive_in_every_encoding(encoding: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    status: list[int] = []
    words = ["127.0.0.1", str(port), encoding, "80000", "2"]
    thread = threading.Thread(target=lambda: status.append(memory.main(["receiver", *words])))
    thread.start()
    assert memory.main(["sender", *words]) == 0
    thread.join()
    assert status == [0]
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_encodings_of_doubles() -> None:
    values = np.arange(3.0)
    assert memory.encoded(values, "xdr") == values.astype(">f8").tobytes()
    assert bytes(memory.encoded(values, "inplace")) == values.tobytes()


def test_pvm_that_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pvm, "_DAEMON", Path("/nowhere/pvmd"))
    with pytest.raises(LaunchError, match="PVM is not installed"):
        pvm.check_pvm()
    found = study.EXPERIMENTS["E1"][1](Bench(print, quick=True))
    assert found["left out"] == "PVM is not installed (on Debian: apt-get install pvm)"
    assert found["shape"] == {}


def test_pvm_has_these_routes_only() -> None:
    machine = pvm.Pvm(None, Path())  # type: ignore[arg-type]
    with pytest.raises(CaseError, match="PVM has no 'dirct'"):
        machine.pingpong([8], route="dirct")


# The experiments ------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8", "E9"])
def test_what_the_wire_decides_holds(name: str) -> None:
    """Also on a machine that is busy: these take the time of an emulated wire."""
    try:
        found = study.measure([name], print, None, quick=True)
    except LaunchError as error:
        pytest.skip(missing(error))
    result = found["experiments"][name]
    print(report.tables(found))
    if not result["shape"]:
        why = result["left out"]  # a sentence with its remedy, or what is missing by name
        pytest.skip(why if isinstance(why, str) else f"{why}: `make mpi-environments` installs MPI libraries")
    result.pop("disturbed", None)
    assert report.failed(found) == []
