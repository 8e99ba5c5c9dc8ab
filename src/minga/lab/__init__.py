"""A heterogeneous cluster in one Linux machine: nodes with their own speed, memory and links.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from minga.lab.cluster import Cluster, laboratory
    from minga.lab.config import Lab, LabNode, read_lab

__all__ = [
    "Cluster",
    "Lab",
    "LabNode",
    "laboratory",
    "read_lab",
]

__getattr__, __dir__ = attach(__name__, __file__)
