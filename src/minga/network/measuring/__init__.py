"""Measurement of networks: comparison of transports, encodings and machines, piecewise fits, pairs, overlap, anomalies.

``measure_hosts`` and ``measure_job`` do everything; the parts can also be used separately. Their result is plain data
(docs/network.md): ``links_from`` turns it into links for the planner, ``find_anomalies`` names what is wrong.
Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from minga.launch.hosts import Host, ssh
    from minga.launch.hosts_file import read_hosts
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

__getattr__, __dir__ = attach(__name__, __file__)
