"""Networks measured: transports, encodings and machines side by side, pieces fitted to times, pairs, overlap, faults.

``measure_hosts`` and ``measure_job`` do all of it; the parts can be used alone. What they leave is plain data
(docs/network.md): ``links_from`` makes a planner's links of it, ``find_anomalies`` says what is wrong, by name.
"""

from __future__ import annotations

from minga.launch.hosts import Host, read_hosts, ssh
from minga.network.measuring.anomalies import Anomaly, find_anomalies
from minga.network.measuring.encodings import ENCODINGS
from minga.network.measuring.measure import measure_hosts, measure_job
from minga.network.measuring.section import links_from

__all__ = [
    "ENCODINGS",
    "Anomaly",
    "Host",
    "find_anomalies",
    "links_from",
    "measure_hosts",
    "measure_job",
    "read_hosts",
    "ssh",
]
