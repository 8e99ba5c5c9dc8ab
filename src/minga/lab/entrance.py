"""Shell scripts that run a program inside a node; starting Python for this would take longer."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from minga.lab.namespaces import address
from minga.lab.state import State, filing

__all__ = ["entrance", "hosts", "write_entrance"]

_OUTSIDE: Final = """\
#!/bin/sh
# Runs a program inside a node of the lab: enter NODE PROGRAM ARGUMENT...
node=$1
shift
case $node in
{nodes}
*)
    echo "the lab {instance} has no node '$node'" >&2
    exit 2
    ;;
esac
for group in $groups; do
    echo $$ > "$group/cgroup.procs" || exit 125
done
# A caller inside a node, such as a launcher of ranks, has already entered the user namespace of the lab.
outside="{prefix}"
[ "$MINGA_LAB_TOKEN" = {token} ] && outside=
MINGA_LAB={instance} MINGA_LAB_NODE=$node MINGA_LAB_TOKEN={token}
export MINGA_LAB MINGA_LAB_NODE MINGA_LAB_TOKEN
PATH=$PATH:/usr/sbin:/sbin
exec $keep $outside nsenter --net="/run/netns/{namespace}$node" unshare --mount --uts -- \\
    /bin/sh {folder}/inside "$name" "$PWD" "$@"
"""

_INSIDE: Final = """\
#!/bin/sh
# Gives the program a host name, the host names of the other nodes, and a /sys that shows the node's own interfaces.
hostname "$1" || exit 125
mount --bind {folder}/hosts /etc/hosts
if mount --rbind /sys/fs/cgroup {folder}/cgroup 2>/dev/null; then
    mount -t sysfs minga /sys 2>/dev/null && mount --rbind {folder}/cgroup /sys/fs/cgroup
    umount --lazy {folder}/cgroup
fi
cd "$2" || exit 125
shift 2
exec "$@"
"""


def entrance(state: State) -> Path:
    """Return the path of a lab's script ``enter NODE PROGRAM ARGUMENT...``."""
    return state.folder / "enter"


def write_entrance(state: State) -> None:
    """Write the scripts and the file with the host names of the nodes."""
    nodes = []
    for number, node in enumerate(state.lab.nodes):
        groups = " ".join(state.groups[number]) if state.quota else ""
        cpus = ",".join(map(str, state.cpus[number])) if state.cpus else ""
        keep = f"taskset --cpu-list {cpus}" if cpus else ""
        words = (f"name={shlex.quote(node.name)}", f"groups={shlex.quote(groups)}", f"keep={shlex.quote(keep)}")
        nodes.append(f"{number}) {' '.join(words)} ;;")
    texts = {
        "nodes": "\n".join(nodes),
        "instance": state.instance,
        "token": state.token,
        "namespace": state.namespace(0).removesuffix("0"),
        "folder": shlex.quote(str(state.folder)),
        "prefix": shlex.join(state.prefix),
    }
    with filing():
        (state.folder / "cgroup").mkdir(exist_ok=True)
        (state.folder / "hosts").write_text(hosts(state))
        (state.folder / "inside").write_text(_INSIDE.format(**texts))
        entrance(state).write_text(_OUTSIDE.format(**texts))
        entrance(state).chmod(0o755)


def hosts(state: State) -> str:
    """Return the text of /etc/hosts, which is the same for every node."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
    lines += [f"{address(number)} {node.name}" for number, node in enumerate(state.lab.nodes)]
    return "\n".join(lines) + "\n"
