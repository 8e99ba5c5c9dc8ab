"""Products over real ssh between nodes with the hosts file of Debian: the own name is 127.0.1.1 on all of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.lab.cluster import Cluster, laboratory
from minga.lab.config import Lab, LabNode

SSHD = "/usr/sbin/sshd"

CLIENT = """\
Host *
  IdentityFile {folder}/key
  Port 2222
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
Host other
  HostName 10.77.0.2
"""
SERVER = """\
Port 2222
HostKey {folder}/host
AuthorizedKeysFile {folder}/key.pub
StrictModes no
PermitRootLogin yes
UsePAM no
PidFile none
"""


@pytest.fixture
def lab(rights: dict[str, Any], tmp_path: Path) -> Iterator[tuple[Cluster, list[str]]]:
    """Two nodes with an ssh server each, and what puts a command there into a world with that hosts file."""
    if not Path(SSHD).exists() or shutil.which("ssh-keygen") is None:
        pytest.skip("needs an ssh server: install the Debian package openssh-server")
    if os.geteuid() != 0:
        pytest.skip("changes what /etc/hosts says in namespaces: run the tests as root")
    for name in ("key", "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    (tmp_path / "client").write_text(CLIENT.format(folder=tmp_path))
    (tmp_path / "server").write_text(SERVER.format(folder=tmp_path))
    (tmp_path / "etc-hosts").write_text("127.0.0.1 localhost\n127.0.1.1 ant\n10.77.0.2 bee\n")
    Path("/run/sshd").mkdir(exist_ok=True)
    own = ["unshare", "-m", "sh", "-c", f'mount --bind {tmp_path}/etc-hosts /etc/hosts && exec "$@"', "sh"]
    nodes = tuple(LabNode(name, 1.0, None, None) for name in ("ant", "bee"))
    with laboratory(Lab("secure", nodes), **rights | {"quota": False}) as cluster:
        servers = [
            subprocess.Popen(
                cluster.command(node, [*own, SSHD, "-D", "-e", "-f", str(tmp_path / "server")]),
                stderr=subprocess.DEVNULL,
            )
            for node in (0, 1)
        ]
        try:
            yield cluster, own
        finally:
            for server in servers:
                server.kill()
                server.wait()


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("listed", ["ant\nbee\n", "other slots=2\n"], ids=["names", "alias"])
def test_ranks_start_where_the_own_name_is_the_loopback(
    lab: tuple[Cluster, list[str]], tmp_path: Path, listed: str
) -> None:
    cluster, own = lab
    a = np.random.default_rng(1).random((32, 32))
    np.save(tmp_path / "a.npy", a)
    (tmp_path / "hosts").write_text(listed)
    words = [sys.executable, "-m", "minga.cli.main", "matmul", *[str(tmp_path / "a.npy")] * 2]
    words += ["-o", str(tmp_path / "c.npy"), "--hosts", str(tmp_path / "hosts")]
    ready = f"ssh -F {tmp_path}/client"
    limit = time.monotonic() + 60
    while cluster.execute(0, [*own, *ready.split(), "other", "true"]).returncode and time.monotonic() < limit:
        time.sleep(0.1)
    done = cluster.execute(0, [*own, *words, "--shell", ready], timeout=100)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "c.npy"), a @ a, rtol=1e-13)
