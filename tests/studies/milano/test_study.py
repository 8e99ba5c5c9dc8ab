"""`minga bench milano`: what the paper printed, what is said of results, and the experiments at a size for tests."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from command_line import in_process
from minga.lab.cluster import Rights
from minga.studies.experiments import Bench
from minga.studies.milano import labs, paper, study, sweeps
from minga.studies.milano.errors import errors
from minga.studies.tinetti import labs as tinetti_labs

TINY = sweeps.Sizes((12, 24), 4, (12, 24, 48), 4, (2,), 1, 1e-2, 1e-5, 1e-2, (12, 6))


def quiet(line: str) -> None:
    """Say nothing."""


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "sizes", lambda *, quick: TINY)


# The paper ------------------------------------------------------------------------------------------------------------
def test_the_papers_tables_follow_from_its_times() -> None:
    """Speed-up of 14 processes as printed, and the shape that is looked for."""
    shapes = {mesh: paper.shape(paper.PROCESSES, ways) for mesh, ways in paper.TIMES.items()}
    assert [s["fastest_with"]["blocking"] for s in shapes.values()] == [6, 10, 14]
    assert [s["blocking_peaks"] for s in shapes.values()] == [True, True, False]
    assert all(s["overlapped_rises"] for s in shapes.values())
    for mesh, ways in paper.TIMES.items():
        for way, found in paper.derived(paper.PROCESSES, ways).items():
            assert found["speed_up"] == pytest.approx(paper.SPEED_UPS[mesh][way], abs=0.00501)
            assert found["wasted"][-1] == pytest.approx(1 - paper.EFFICIENCIES[mesh][way][-1], abs=0.00501)


def test_totals_of_sweeps_as_printed() -> None:
    totals = {50: (6624, 6669, 6591, 6700, 6667, 6927), 100: (6019, 6021, 6011, 6022, 5512, 5550),
              200: (8159, 8160, 7848, 7861, 7782, 7857)}  # fmt: skip
    found = {n: tuple(sum(s) for one in by.values() for s in one[:2]) for n, by in paper.SWEEPS.items()}
    assert found == totals


def test_its_errors() -> None:
    """Two entries of Table 9 are interchanged; all others of Tables 2 to 4, 8 and 9 follow from what they come from."""
    found = errors(Bench(quiet, quick=True))
    assert all(found["shape"].values())
    wrong = [(row["printed"], row["follows"]) for row in found["table"] if row["place"].startswith("Table 9,")]
    assert wrong == [(0.92, 0.93), (0.93, 0.92)]


def test_an_error_that_is_not_one_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(paper.SWEEPS[50], 2, ((2548, 1719, 892, 810, 655), (2553, 1722, 899, 826, 669), 0.88))  # type: ignore[arg-type]
    shape = errors(Bench(quiet, quick=True))["shape"]
    assert [text for text, holds in shape.items() if not holds] == [
        "all percentages and totals of Tables 2 to 4 follow from their columns"
    ]


# The command ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_differences_between_blocks(tmp_path: Path) -> None:
    """What was an early end vanishes with it, red-black differs nowhere, and all is said beside the paper's."""
    out, page = tmp_path / "found.json", tmp_path / "page.html"
    said = in_process("bench", "milano", "--quick", "--only", "table-1", "-o", str(out), "--html", str(page))
    assert said.status == 0, said.err
    result = json.loads(out.read_text())["experiments"]["table-1"]
    assert result["shape"]["p blocks on one rank give the bits of p ranks"] is True
    percent = {
        end: {int(n): found["2"] for n, found in by.items()} for end, by in result["measured"]["percent"].items()
    }
    for field in ("A", "potential", "|psi|", "|v|"):
        assert percent["early"][12][field] > 20 * percent["late"][12][field] > 0
        assert percent["red-black"][12][field] == 0.0
    for field in ("A", "potential"):
        assert percent["early"][24][field] < 0.2 * percent["early"][12][field]
    assert "field A  planes 12  2 blocks" in said.out
    assert "(0.004)" in said.out
    assert "<h2>table-1. Differences between one process and several, %</h2>" in page.read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_sweeps_beside_the_papers(tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    said = in_process("bench", "milano", "--quick", "--only", "table-2", "--only", "figure-7", "-o", str(out))
    experiments = json.loads(out.read_text())["experiments"]
    step, whole = experiments["table-2"]["table"]
    assert step["lexicographic"].endswith(" (2548)")
    assert whole["boundary-first"].endswith(" (6669)")
    assert whole["more"].endswith(" % (0.68 %)")
    counts = [int(whole[order].split()[0]) for order in sweeps.ORDERS]
    assert abs(counts[1] - counts[0]) < 0.2 * counts[0]
    assert "draw" not in experiments["figure-7"]
    assert said.err.count("statements hold") == 2


@pytest.mark.slow
def test_without_root_times_are_left_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tinetti_labs, "lab_rights", lambda: Rights(rootless=True, version=2))
    said = in_process("bench", "milano", "--quick", "--only", "table-5", "--only", "table-8", "--only", "figure-3")
    assert said.status == 0, said.err
    assert said.out.count("left out: these experiments need labs with CPU quotas") == 3
    assert "run it as root" in said.out


def test_every_table_has_a_name() -> None:
    tables = {f"table-{number}" for number in range(1, 10)}
    assert set(study.NAMES) == tables | {"figure-3", "figure-6", "figure-7", "errors"}


def test_an_unknown_table() -> None:
    said = in_process("bench", "milano", "--only", "table-10")
    assert said.status == 2
    assert "there is no experiment 'table-10'" in said.err


# Times ----------------------------------------------------------------------------------------------------------------
def test_the_nodes() -> None:
    lab = labs.nodes()
    assert [node.share for node in lab.nodes] == [0.79] * 6 + [1.0] * 4 + [0.61] * 4
    assert lab.rate == 100e6


def test_times_and_what_follows_from_them() -> None:
    """The paper's own times in place of ours give its tables and fulfil all statements."""
    bench = Bench(quiet, quick=False)
    times = {"processes": paper.PROCESSES, "seconds_a_sweep": paper.TIMES}
    bench.once("times", lambda: times)
    for experiment in (labs.times, labs.speed_ups, labs.efficiencies, labs.wasted):
        found = experiment(bench)
        assert all(found["shape"].values()), found["shape"]
    assert labs.wasted(bench)["measured"]["wasted"]["40x100x40"]["blocking"][-1] == pytest.approx(78.4, abs=0.05)
    curves = labs.speed_ups(bench)["panels"][0]["curves"]
    for way in labs.WAYS:
        assert curves[way] == pytest.approx(curves[f"{way}, paper"], abs=0.00501)


def test_quick_times_have_one_mesh_and_are_not_judged() -> None:
    bench = Bench(quiet, quick=True)
    seconds = {"28x12x12": {"blocking": [2.0, 1.5, 1.0], "overlapped": [2.0, 1.2, 0.5]}}
    bench.once("times", lambda: {"processes": (1, 2, 4), "seconds_a_sweep": seconds})
    for experiment in (labs.times, labs.speed_ups, labs.efficiencies, labs.wasted):
        found = experiment(bench)
        assert found["shape"] == {}
        assert found["panels"]
    assert labs.speed_ups(bench)["measured"]["speed_up"]["28x12x12"]["overlapped"] == [1.0, 2.0 / 1.2, 4.0]


def test_calls_beside_the_papers() -> None:
    ours = dict.fromkeys(("Send", "Recv", "Isend", "Irecv"), 0.01)
    found = labs.calls_beside({"21504": ours | {"Send": 0.1}, str(21504 << 6): ours | {"Send": 100.0}})
    assert found["table"][0] == {
        "bytes": 21504, "paper's kB": 21, "Send": 0.1, "(Send)": 0.2, "Recv": 0.01, "(Recv)": 3.8, "Isend": 0.01,
        "(Isend)": 1.3, "Irecv": 0.01, "(Irecv)": 0.005,
    }  # fmt: skip
    assert all(found["shape"].values())


def test_pictures_of_differences(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs Matplotlib: pip install matplotlib")
    from minga.models.electrodeposition.soft import soft_cell
    from minga.view.differences import draw_differences

    problem = soft_cell({"y": 12, "x": 12}, dt=0.01, steps=1, fingers=True)
    assert problem.kinds is not None
    path = tmp_path / "where.png"
    draw_differences([np.ones((12, 12)), np.zeros((12, 12))], problem.grid, problem.kinds, "differences", path)
    assert path.read_bytes()[:4] == b"\x89PNG"
