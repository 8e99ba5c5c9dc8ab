"""The probe before a run sees what a lab gives its nodes: shares of a processor, memory, and links."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from minga.lab.cluster import laboratory

PROBE = """\
import json
import minga as mg
from minga.cli.case import find_source, read_case
from minga.plan.probe.probe import probe_ranks

comm = mg.MPIComm()
case = read_case(find_source("heat"), ["run.steps=1", "grid.shape=[767, 767]"])
group = probe_ranks(case.model, comm, seconds=0.6, cache=False)
if comm.rank == 0:
    size = float(group.speeds[0].cells[-1])
    rates = [float(group.speeds[number].rate(size)) for number in group.speed_of]
    large = float(group.links.levels[0].time(1 << 20))
    print(json.dumps({"rates": rates, "names": group.names, "memory": group.memory.tolist(), "megabyte": large,
                      "shared": group.links.shared}))
"""


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.usefixtures("own_labs")
@pytest.mark.usefixtures("quotas")
def test_shares_of_the_nodes_are_seen(tmp_path: Path, rights: dict[str, Any]) -> None:
    script = tmp_path / "probe.py"
    script.write_text(PROBE)
    with laboratory("three-ages", **rights) as cluster:
        done = cluster.run([sys.executable, str(script)], ranks=3)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout[done.stdout.index("{") :])
    assert found["names"] == ["new", "middle", "old"]
    new, middle, old = found["rates"]
    assert new / middle == pytest.approx(2, rel=0.25)
    assert middle / old == pytest.approx(2, rel=0.25)
    assert max(found["memory"]) <= 0.8 * 2e9 * 1.08  # 2 GB, of which a part is for the system
    # A mebibyte over 100 Mb/s takes 89 ms; quotas of spinning ranks make it longer.
    assert 0.08 < found["megabyte"] < 0.3
    assert not found["shared"]
