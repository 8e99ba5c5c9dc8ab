"""Networks measured: transports side by side, pieces fitted to times, pairs of machines, overlap with computation.

``measure_hosts`` and ``measure_job`` do all of it; the parts can be used alone.
"""

from __future__ import annotations

from minga.fit.network.hosts import Host, read_hosts, ssh
from minga.fit.network.measure import measure_hosts, measure_job
from minga.fit.network.section import links_from

__all__ = ["Host", "links_from", "measure_hosts", "measure_job", "read_hosts", "ssh"]
