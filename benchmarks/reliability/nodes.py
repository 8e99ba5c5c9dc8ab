"""Nodes of a lab with an ssh server each, of which only the first one sees the directory "work"."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from minga.lab.cluster import Cluster, laboratory
from minga.lab.config import Lab, LabNode

__all__ = ["Missing", "ssh_nodes"]

_SSHD = "/usr/sbin/sshd"
_CLIENT = """\
Host *
  IdentityFile {folder}/key
  Port 2222
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
"""
_SERVER = """\
Port 2222
HostKey {folder}/host
AuthorizedKeysFile {folder}/key.pub
StrictModes no
PermitRootLogin yes
UsePAM no
PidFile none
"""
_PATIENCE = 60.0


class Missing(Exception):
    """Raised if this machine cannot make nodes with ssh servers; the message says what is missing."""


@contextmanager
def ssh_nodes(
    names: Sequence[str],
    folder: Path,
    rights: Mapping[str, Any],
    known: str,
    aliases: str = "",
    disk: str = "",
) -> Iterator[tuple[Cluster, list[str]]]:
    """Yield the nodes, and the words that put a command on the first one into its world; end all servers afterwards.

    Parameters
    ----------
    names
        Names of the nodes.
    folder
        Gets the configuration of ssh, the file ``client``, and the directory ``work``.
    rights
        Keywords of `laboratory`.
    known
        What ``/etc/hosts`` says on all nodes beside localhost.
    aliases
        Lines added to the configuration of ssh.
    disk
        Size of the disk under ``work`` of all nodes but the first one, as `mount` takes it, such as "64m".

    Raises
    ------
    Missing
        Where there is no ssh server, or no right to change ``/etc/hosts`` in a namespace.
    """
    if not Path(_SSHD).exists() or shutil.which("ssh-keygen") is None:
        raise Missing("needs an ssh server: install the Debian package openssh-server")
    if os.geteuid() != 0:
        raise Missing("changes what /etc/hosts says in namespaces: run it as root")
    for name in ("key", "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "client").write_text(_CLIENT.format(folder=folder) + aliases)
    sources = os.environ.get("PYTHONPATH")
    (folder / "server").write_text(
        _SERVER.format(folder=folder) + (f"SetEnv PYTHONPATH={sources}\n" if sources else "")
    )
    (folder / "etc-hosts").write_text("127.0.0.1 localhost\n" + known)
    (folder / "work").mkdir()
    Path("/run/sshd").mkdir(exist_ok=True)
    hosts = f"mount --bind {folder}/etc-hosts /etc/hosts"
    apart = f"{hosts} && mount -t tmpfs {f'-o size={disk} ' if disk else ''}none {folder}/work"
    own = [
        ["unshare", "-m", "sh", "-c", f'{world} && exec "$@"', "sh"] for world in (hosts, *[apart] * (len(names) - 1))
    ]
    lab = Lab("secure", tuple(LabNode(name, 1.0, None, None) for name in names))
    with laboratory(lab, **{**rights, "quota": False}) as cluster:
        servers = [
            subprocess.Popen(
                cluster.command(node, [*own[node], _SSHD, "-D", "-e", "-f", str(folder / "server")]),
                stderr=subprocess.DEVNULL,
            )
            for node in range(len(names))
        ]
        try:
            for name in names[1:]:
                _await(cluster, [*own[0], "ssh", "-F", str(folder / "client"), name, "true"])
            yield cluster, own[0]
        finally:
            for server in servers:
                server.kill()
                server.wait()


def _await(cluster: Cluster, command: Sequence[str]) -> None:
    """Repeat a command on the first node until it succeeds."""
    limit = time.monotonic() + _PATIENCE
    while cluster.execute(0, list(command), capture_output=True).returncode:
        assert time.monotonic() < limit, "an ssh server does not answer"
        time.sleep(0.1)
