"""`minga bench milano-tables` at a size for tests."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from minga.cli.main import main
from minga.studies.milano import study as milano

TINY = milano.Sizes((12, 24), (12,), 4, (2,), 1, 1e-2, 1e-5, 1e-2, (12, 6))


@pytest.mark.slow
def test_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What was an early end vanishes with it, red-black differs nowhere, and all is said beside the paper's."""
    monkeypatch.setattr(milano, "sizes", lambda *, quick: TINY)
    out = tmp_path / "tables.json"
    monkeypatch.setattr("sys.argv", ["minga", "bench", "milano-tables", "--quick", "-o", str(out)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    result = json.loads(out.read_text())
    assert result["same bits on ranks"] is True
    percent = {(row["end"], row["planes"]): row["percent"] for row in result["table 1"]}
    for field in ("A", "potential", "|psi|", "|v|"):
        assert percent["early", 12][field] > 20 * percent["late", 12][field] > 0
        assert percent["red-black", 12][field] == 0.0
    for field in ("A", "potential"):
        assert percent["early", 24][field] < 0.2 * percent["early", 12][field]
    counts = result["tables 2 to 4"][0]
    assert abs(sum(counts["boundary-first"]) - sum(counts["lexicographic"])) < 0.1 * sum(counts["lexicographic"])
    printed = capsys.readouterr().out
    assert "Table 1." in printed
    assert "(6624 6669 +0.68 %)" in printed


def test_pictures_of_differences(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from minga.models.electrodeposition.soft import soft_cell
    from minga.view.differences import draw_differences

    problem = soft_cell({"y": 12, "x": 12}, dt=0.01, steps=1, fingers=True)
    assert problem.kinds is not None
    path = tmp_path / "where.png"
    draw_differences([np.ones((12, 12)), np.zeros((12, 12))], problem.grid, problem.kinds, "differences", path)
    assert path.read_bytes()[:4] == b"\x89PNG"
