"""The stored numbers of `minga bench milano`, their tables, and a quick run in a real lab."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from minga.errors import LaunchError
from minga.studies.milano.paper import derived
from minga.studies.milano.study import NAMES
from minga.studies.tinetti.labs import check_quotas
from missing import missing

ROOT = Path(__file__).parents[2]
STORED = ROOT / "benchmarks" / "results" / "milano.json"


def test_what_is_stored_has_the_papers_shape() -> None:
    """Every statement holds, and metrics follow from the stored times."""
    content = json.loads(STORED.read_text())
    assert not content["quick"]
    results = content["results"]
    times = results["table-7"]["measured"]
    for mesh, ways in times["seconds_a_sweep"].items():
        metrics = derived(times["processes"], ways)
        for table, name in (("table-8", "speed_up"), ("table-9", "efficiency")):
            for way in ways:
                assert metrics[way][name] == results[table]["measured"][name][mesh][way]
    for name in NAMES:
        if name in results and "disturbed" not in results[name]:
            assert all(results[name]["shape"].values()), name


def test_stored_tables_as_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare the tables of the pages with those made from the stored results."""
    monkeypatch.syspath_prepend(str(ROOT))
    report = importlib.import_module("benchmarks.milano.report")
    content = json.loads(STORED.read_text())
    assert report.markdown(content) in (ROOT / "docs" / "performance.md").read_text()
    assert report.sweeps_markdown(content) in report.SWEEPS_PAGE.read_text()


@pytest.mark.slow
def test_a_quick_run_in_a_lab(tmp_path: Path) -> None:
    try:
        check_quotas()
    except LaunchError as error:
        pytest.skip(missing(error))
    out = tmp_path / "out.json"
    words = [sys.executable, "-m", "benchmarks.milano", "--quick", "--only", "table-7", "table-5", "--out", str(out)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads(out.read_text())["results"]
    times = results["table-7"]["measured"]
    (ways,) = times["seconds_a_sweep"].values()
    assert {way: len(seconds) for way, seconds in ways.items()} == {"blocking": 3, "overlapped": 3}
    assert times["network"]["interface_bytes_of_two"] > times["network"]["bytes_a_plane"]
    assert set(results["table-5"]["milliseconds"]["21504"]) == {"Send", "Recv", "Isend", "Irecv"}
