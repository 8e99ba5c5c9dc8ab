"""Copies of an environment for hosts that lack it, with a shell that puts a directory in the place of a host's root."""

from __future__ import annotations

from pathlib import Path

import pytest

from minga.errors import LaunchError
from minga.launch.hosts import Host, shell_launcher
from minga.launch.install import Environment, install

SHELL = """#!/bin/sh
host=$1
shift
there={folder}/hosts/$host
[ -d "$there" ] || {{ echo "no route to $host" >&2; exit 255; }}
exec sh -c "$(echo "$*" | sed -e "s#-C / #-C $there #g" -e "s#{folder}/env#$there{folder}/env#g")"
"""
PYTHON = "#!/bin/sh\n"


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """An environment of two folders, of which the first one has the Python, and the hosts ant and bee."""
    for folder in ("env/own/bin", "env/base", "hosts/ant", "hosts/bee"):
        (tmp_path / folder).mkdir(parents=True)
    python = tmp_path / "env/own/bin/python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / "env/base/library").write_text("x" * 100_000)
    (tmp_path / "shell").write_text(SHELL.format(folder=tmp_path))
    (tmp_path / "shell").chmod(0o755)
    return Environment(python, (tmp_path / "env/own", tmp_path / "env/base"))


def installed(tmp_path: Path, environment: Environment, *hosts: Host) -> list[str]:
    told: list[str] = []
    install(hosts, shell_launcher(str(tmp_path / "shell")), environment, told.append)
    return told


def test_hosts_get_what_they_lack(tmp_path: Path, environment: Environment) -> None:
    on_bee = tmp_path / "hosts/bee" / str(tmp_path).lstrip("/") / "env"
    (on_bee / "base").mkdir(parents=True)  # of another kind, which is left alone
    said = installed(tmp_path, environment, Host("ant"), Host("bee"), Host("cat", python="/opt/python"))
    assert f"got {tmp_path}/env/own, {tmp_path}/env/base in " in said[0].replace(f"{tmp_path}/hosts/ant", "")
    assert f"got {tmp_path}/env/own in " in said[1].replace(f"{tmp_path}/hosts/bee", "")
    assert said[2] == "cat  has a Python of its own, /opt/python"
    on_ant = tmp_path / "hosts/ant" / str(tmp_path).lstrip("/") / "env"
    assert (on_ant / "own/bin/python").read_text() == PYTHON
    assert (on_ant / "base/library").stat().st_size == 100_000
    assert not (on_bee / "base/library").exists()
    assert " has " in installed(tmp_path, environment, Host("ant"))[0]


def test_every_host_that_cannot_get_it_is_named(tmp_path: Path, environment: Environment) -> None:
    for name in ("bad", "own"):
        (tmp_path / "hosts" / name).mkdir()
    (tmp_path / "hosts/bad" / str(tmp_path).lstrip("/")).parent.mkdir(parents=True)
    (tmp_path / "hosts/bad" / str(tmp_path).lstrip("/")).write_text("a file in the way")
    on_own = tmp_path / "hosts/own" / str(tmp_path).lstrip("/") / "env/own"
    on_own.mkdir(parents=True)
    with pytest.raises(LaunchError) as caught:
        installed(tmp_path, environment, Host("ant"), Host("gone"), Host("bad"), Host("own"))
    lines = str(caught.value).splitlines()
    assert "3 of 4 hosts cannot run minga" in lines[0]
    assert "does not answer: no route to gone" in lines[1]
    assert "could not store a copy: " in lines[2]
    assert "cannot use " in lines[3]
    assert list(on_own.iterdir()) == []


def test_this_environment_has_no_folders_of_the_system() -> None:
    found = Environment.here()
    assert found.folders
    assert all(folder not in (Path("/usr"), Path("/usr/local"), Path("/")) for folder in found.folders)
    assert any(Path(__import__("minga").__file__).is_relative_to(folder) for folder in found.folders)
