"""How hosts are reached, and how they reach this machine again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from command_line import in_process
from minga.errors import CaseError
from minga.launch.hosts import Host, shell_command, shell_launcher
from minga.launch.launcher import Launcher
from minga.launch.reach import address_options, agent, interface_of, not_started, own_address
from minga.models.matmul.cli.launch import _command, _Places
from minga.models.matmul.cli.matmul import MatmulRequest


def test_a_shell_may_be_several_words() -> None:
    host, command = Host("pc7"), ["echo", "a b"]
    words = shell_launcher("ssh -F 'my config'")(host, command)
    assert words[:3] == ["ssh", "-F", "my config"]
    assert "BatchMode=yes" in words  # no password is ever asked for
    assert words[-2:] == ["pc7", "echo 'a b'"]
    assert shell_launcher("./here --quick")(host, command) == ["./here", "--quick", "pc7", "echo 'a b'"]


@pytest.mark.parametrize(("shell", "words"), [("", "--shell is empty"), ("ssh -F 'cfg", "cannot be read")])
def test_a_shell_that_cannot_be_meant(shell: str, words: str) -> None:
    with pytest.raises(CaseError, match=words):
        shell_command(shell)


def test_launchers_call_one_program(tmp_path: Path) -> None:
    program = agent(tmp_path, "printf '%s,'")
    done = subprocess.run([program, "-x", "pc7", "a b"], capture_output=True, text=True, check=True)
    assert done.stdout == "-x,pc7,a b,"


def test_the_way_to_hosts_gives_this_machines_address() -> None:
    assert own_address([Host("localhost"), Host("nowhere.invalid")], "./here") == "127.0.0.1"
    assert own_address([Host("nowhere.invalid")], "./here") is None
    assert own_address([Host("far", address="127.0.0.2")], "./here") == "127.0.0.1"
    name, network = interface_of("127.0.0.1") or ("", "")
    assert (name, network) == ("lo", "127.0.0.0/8")
    assert interface_of("192.0.2.1") is None


def test_launchers_are_told_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    assert address_options("MPICH", "127.0.0.1") == ["-localhost", "127.0.0.1"]
    assert address_options("Intel MPI", "127.0.0.1") == ["-iface", "lo"]
    assert address_options("Open MPI", "127.0.0.1") == []
    monkeypatch.setattr("minga.launch.reach.interface_of", lambda address: ("eth0", "10.0.0.0/24"))
    words = ["--prtemca", "oob_tcp_if_include", "10.0.0.0/24", "--mca", "btl_tcp_if_include", "10.0.0.0/24"]
    assert address_options("Open MPI", "10.0.0.1") == words
    assert address_options("MPICH", None) == []


@pytest.mark.parametrize("vendor", ["MPICH", "Open MPI"])
def test_products_on_hosts_take_the_same_shell(vendor: str, tmp_path: Path) -> None:
    request = MatmulRequest(Path("a.npy"), Path("b.npy"), shell="ssh -F cfg")
    places = _Places(0, [Host("localhost"), Host("pc7", address="127.0.0.3")])
    words = _command(Launcher(Path("mpiexec"), vendor), places, request, tmp_path)
    assert str(tmp_path / "shell") in words
    assert "exec ssh -F cfg -o BatchMode=yes" in (tmp_path / "shell").read_text()
    assert ("127.0.0.1" in words) == (vendor == "MPICH")


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        (
            '[proxy:1@bee] HYDU_sock_connect (lib/utils/sock.c:158): unable to connect from "bee" to "ant" (Connection',
            "bee cannot reach this machine as ant",
        ),
        ("[proxy:1@bee] HYDU_sock_connect: unable to get host address for ant (1)", "name, ant, is unknown"),
        ("ssh: connect to host pc7 port 22: No route to host", "connect to host pc7 port 22: No route"),
        ("root@pc7: Permission denied (publickey).", "Permission denied (publickey)"),
        ("bash: line 1: /opt/bin/hydra_pmi_proxy: No such file or directory", "the same MPI at the same path"),
    ],
)
def test_why_nothing_was_started(line: str, meaning: str) -> None:
    assert meaning in (not_started(["something else\n", line + "\n"]) or "")
    assert not_started(["=   BAD TERMINATION\n", "=   RANK 0 PID 7 RUNNING AT ant\n"]) is None


def test_a_product_of_which_no_rank_started_says_so(in_tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was lost, as nothing had begun."""
    import numpy as np

    np.save("a.npy", np.eye(4))
    Path("hosts").write_text("localhost\n")
    fake = in_tmp_path / "mpiexec"
    fake.write_text('#!/bin/sh\necho \'unable to connect from "bee" to "ant" (Connection refused)\' >&2\nexit 255\n')
    fake.chmod(0o755)
    shell = in_tmp_path / "here"
    shell.write_text("#!/bin/sh\nexit 0\n")
    shell.chmod(0o755)
    monkeypatch.setenv("MINGA_MPIEXEC", str(fake))
    said = in_process("matmul", "a.npy", "a.npy", "-o", "c.npy", "--hosts", "hosts", "--shell", f"{shell} -q")
    assert said.status != 0
    assert "no rank could be started: bee cannot reach this machine as ant" in said.err
    assert "was lost" not in said.err
    assert not Path("c.npy").exists()
