"""Nodes of a lab with an ssh server each; tests that need them are skipped where they cannot be made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from benchmarks.reliability import nodes

from minga.lab.cluster import Cluster

__all__ = ["ssh_nodes"]


@contextmanager
def ssh_nodes(
    names: Sequence[str], folder: Path, rights: Mapping[str, Any], known: str, aliases: str = ""
) -> Iterator[tuple[Cluster, list[str]]]:
    """Yield the nodes as `benchmarks.reliability.nodes` makes them; skip where they cannot be made."""
    try:
        with nodes.ssh_nodes(names, folder, rights, known, aliases) as made:
            yield made
    except nodes.Missing as missing:
        pytest.skip(str(missing))
