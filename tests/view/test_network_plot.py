"""The plot of a network: drawn in both formats, with what was measured in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from minga.errors import MingaError
from minga.network.measuring.sampling import Sample, message_sizes
from minga.network.measuring.section import fits_of, measured_link
from minga.network.pages.network_plot import draw_network


@pytest.fixture
def section() -> dict[str, Any]:
    def entry(level: int, between: str, transport: str, alpha: float, beta: float) -> dict[str, Any]:
        time = {n: alpha + beta * n + (9e-4 if n > 65536 else 0) for n in message_sizes()}
        samples = [Sample(n, (t, 1.1 * t, 1.2 * t)) for n, t in time.items()] + [Sample(1 << 25, (float("nan"),))]
        return measured_link(level, between, transport, (0, 1), samples, fits_of(samples, {"eager limit": 65536}))

    return {
        "library": "MPICH 5.0.2",
        "pairs": {"names": ["ana", "berta"], "medium": {"kind": "switch"}},
        "links": [
            entry(0, "nodes", "icmp", 7e-6, 8.4e-8),
            entry(0, "nodes", "mpi", 2e-5, 8.5e-8),
            entry(1, "one node", "mpi", 1e-6, 2e-10),
        ],
    }


@pytest.mark.slow
def test_time_and_bandwidth_against_size(section: dict[str, Any], tmp_path: Path) -> None:
    text = draw_network(section, tmp_path / "network.svg").read_text()
    comments = set(re.findall(r"<!-- (.*?) -->", text))
    assert {"ICMP", "MPI", "MPI, one node", "eager limit", "ana, berta: switch, MPICH 5.0.2"} <= comments
    assert "bandwidth (MB/s)" in comments
    assert draw_network(section, tmp_path / "network.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
def test_nothing_measured_and_no_place_to_draw(section: dict[str, Any], tmp_path: Path) -> None:
    draw_network({**section, "links": []}, tmp_path / "empty.svg")
    with pytest.raises(MingaError):
        draw_network(section, tmp_path / "absent" / "network.svg")
