"""``minga bcast``: a file to hosts that are all this machine, and what is said where that cannot be."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from command_line import command, in_process, nothing_written
from minga.errors import CaseError, LaunchError, RunError
from minga.launch.hosts import Host
from minga.network.broadcast import content
from minga.network.broadcast.agent import Agent
from minga.network.broadcast.cli import agents as agents_module
from minga.network.broadcast.cli import bcast
from minga.network.broadcast.cli.agents import Agents, Outcome
from minga.network.broadcast.cli.outcome import BroadcastError
from minga.network.broadcast.extents import Extent
from minga.network.broadcast.files import Arriving, destination
from minga.network.broadcast.group import Group, Statistics
from minga.network.broadcast.manifest import Entry, Manifest
from minga.network.broadcast.source import Source

HERE = """#!/bin/sh
exec sh -c "exec $2"
"""
"""Runs a command "on a host" here."""
ENDING = f"""#!{sys.executable}
import importlib.metadata, json, subprocess, sys
if sys.argv[1] != "b":
    sys.exit(subprocess.run(sys.argv[2], shell=True).returncode)
version = importlib.metadata.version("minga") if WORDS != "old" else "0.0.1"
print("Welcome to b!\\n" + json.dumps(dict(greeting="minga-broadcast", minga=version, pid=1)), flush=True)
sys.stdin.readline()
print("out of luck", file=sys.stderr)
sys.exit(3)
"""


@pytest.fixture
def files(in_tmp_path: Path) -> Path:
    """A directory with a file, two hosts and ways to reach them."""
    (in_tmp_path / "file").write_bytes(bytes(range(256)) * 1500)
    (in_tmp_path / "hosts").write_text("a address=127.0.0.1\nb address=127.0.0.1\n")
    (in_tmp_path / "alone").write_text("localhost\n")
    for name, text in (
        ("here", HERE),
        ("ending", ENDING.replace("WORDS", '"new"')),
        ("old", ENDING.replace("WORDS", '"old"')),
    ):
        (in_tmp_path / name).write_text(text)
        (in_tmp_path / name).chmod(0o755)
    return in_tmp_path


def test_all_hosts_get_the_file(files: Path) -> None:
    (files / "out").mkdir()
    said = in_process(
        "bcast", "file", "--hosts", "hosts", "--to", f"{files}/out/{{host}}", "--shell", "./here", "--json"
    )
    assert said.status == 0, said.err
    result = json.loads(said.out)
    assert result["received"] == ["a", "b"]
    assert result["late"] == []
    assert result["bytes"] == 256 * 1500
    assert result["seconds"] > 0
    for name in ("a", "b"):
        assert (files / "out" / name).read_bytes() == (files / "file").read_bytes()
    assert len(list((files / "out").iterdir())) == 2
    with nothing_written(files / "out"):
        again = in_process("bcast", "file", "--hosts", "hosts", "--to", f"{files}/out/{{host}}", "--shell", "./here")
    assert again.status == 1
    assert "exists already" in again.err
    assert "--force" in again.err


def test_a_failure_as_json(files: Path) -> None:
    said = in_process("bcast", "file", "--hosts", "hosts", "--to", "x", "--shell", "false", "--json")
    assert said.status == 1
    found = json.loads(said.out)
    assert found["received"] == []
    assert sorted(found["failed"]) == ["a", "b"]
    assert "no agent runs on host a" in found["failed"]["a"]
    assert found["error"] in said.err
    assert found["remedy"]
    bad = in_process("bcast", "absent", "--hosts", "hosts", "--to", "x", "--json")
    assert bad.status == 2
    assert json.loads(bad.out)["error"] == "there is no file absent"


DONE: dict[str, Any] = {
    **dict.fromkeys(("files", "bytes", "sent_bytes", "packed_bytes", "changed_bytes"), 0),
    "kind": "file",
    "seconds": 1.0,
    "passed_over": {},
    "sha256": "",
    "changed": False,
    "statistics": {"route": "chain"},
    "lost": [],
}


def rounds(monkeypatch: pytest.MonkeyPatch, comes_after: int) -> list[list[str]]:
    """Let host b run from some attempt on, in a time that passes only between attempts; return the attempts."""
    tried: list[list[str]] = []
    now = [0.0]

    def attempt(request: Any, hosts: Any) -> Any:
        names = [host.name for host, _ in hosts]
        tried.append(names)
        there = [name for name in names if name != "b" or len(tried) > comes_after]
        absent = {name: LaunchError(f"no agent runs on host {name}") for name in names if name not in there}
        return [Outcome(name, done=DONE) for name in there] if len(there) > 1 else [], absent

    monkeypatch.setattr(bcast, "_round", attempt)
    monkeypatch.setattr(bcast.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(bcast.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return tried


def test_hosts_that_come_late_get_it_afterwards(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = rounds(monkeypatch, comes_after=3)
    result = bcast.bcast(bcast.BroadcastRequest(Path("file"), "x", Path("hosts"), late=10))
    assert result["received"] == ["a", "b"]
    assert result["late"] == ["b"]
    assert [names[1:] for names in tried] == [["a", "b"], ["b"], ["b"], ["b"]]
    assert "b came late" in bcast.text(result)


def test_hosts_that_come_too_late_are_told_when(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = rounds(monkeypatch, comes_after=100)
    with pytest.raises(BroadcastError, match="host b did not come within 11 s: no agent runs on host b") as caught:
        bcast.bcast(bcast.BroadcastRequest(Path("file"), "x", Path("hosts"), late=10))
    assert caught.value.received == ("a",)
    assert list(caught.value.failed) == ["b"]
    assert len(tried) == 12


def test_silence_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of a transfer every agent reports; in it, the group notices, and those that have ended name the lost."""
    now = [100.0]
    monkeypatch.setattr(agents_module.time, "monotonic", lambda: now[0])

    def team() -> Agents:
        members = [agents_module._Agent(Host(name), None, heard=100.0) for name in "abc"]  # type: ignore[arg-type]
        return Agents(members)

    def later(team: Agents, seconds: float) -> None:
        for _ in range(round(seconds / 0.5)):
            now[0] += 0.5
            team._judge(2.0)

    transfer = team()
    transfer.strict = False
    later(transfer, 100.0)
    assert all(agent.outcome is None for agent in transfer.members)
    transfer.members[0].outcome = Outcome("a", failed="b was lost", lost=(1,))
    transfer.members[2].outcome = Outcome("c", failed="b was lost", lost=(1,))
    transfer.members[1].heard = now[0]
    later(transfer, 1.0)
    assert transfer.members[1].outcome is None
    later(transfer, 0.5)
    assert transfer.members[1].outcome == Outcome("b", failed="silent for 1.5 s", vanished=True)

    hopeless = team()
    hopeless.judged = now[0]
    for agent in hopeless.members:
        agent.heard = now[0]
    hopeless.members[0].outcome = Outcome("a", failed="b was lost", lost=(1,))
    later(hopeless, 0.5)
    assert hopeless.members[2].outcome is None
    later(hopeless, 0.5)
    assert hopeless.members[2].outcome == Outcome("c"), "it is heard, but cannot get what the sender does not send"

    setting_up = team()
    setting_up.members[0].asked = [None]
    now[0] += 100.0
    setting_up._judge(2.0)  # nothing is known about times when this process itself was stopped
    later(setting_up, 2.0)
    assert all(agent.outcome is None for agent in setting_up.members)
    setting_up.members[0].heard = setting_up.members[2].heard = now[0]
    later(setting_up, 1.5)
    assert [agent.outcome is None for agent in setting_up.members] == [False, False, True]
    assert setting_up.members[1].outcome is not None
    assert setting_up.members[1].outcome.vanished


@pytest.mark.slow
def test_directories_and_pipes_from_the_command_line(files: Path) -> None:
    (files / "tree" / "sub").mkdir(parents=True)
    (files / "tree" / "sub" / "a").write_text("a")
    (files / "tree" / "link").symlink_to("sub/a")
    words = ("--hosts", "hosts", "--to", f"{files}/new-{{host}}", "--shell", "./here")
    said = in_process("bcast", "tree/", *words)
    assert said.status == 0, said.err
    assert "in 1 file to 2 hosts" in said.out
    assert (files / "new-b" / "link").read_text() == "a"
    piped = subprocess.run(
        command("bcast", "-", "--hosts", "hosts", "--to", f"{files}/piped-{{host}}", "--shell", "./here", "--json"),
        input=b"x" * 3_000_000,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert piped.returncode == 0, piped.stderr
    assert json.loads(piped.stdout)["sha256"] == hashlib.sha256(b"x" * 3_000_000).hexdigest()
    assert (files / "piped-a").read_bytes() == b"x" * 3_000_000


@pytest.mark.slow
def test_a_host_that_comes_late(files: Path) -> None:
    (files / "late").write_text(
        '#!/bin/sh\n[ $1 = a ] || mkdir first || exec sh -c "exec $2"\n[ $1 = a ] && exec sh -c "exec $2"\nexit 1\n'
    )
    (files / "late").chmod(0o755)
    words = ("--hosts", "hosts", "--to", f"{files}/new-{{host}}", "--shell", "./late", "--late", "30")
    said = in_process("bcast", "file", *words, "--json")
    assert said.status == 0, said.err
    result = json.loads(said.out)
    assert (result["received"], result["late"]) == (["a", "b"], ["b"])
    assert (files / "new-b").read_bytes() == (files / "file").read_bytes()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("shell", "words"),
    [
        ("./ending", "host b: the agent ended with status 3: out of luck"),
        ("./old", "host b has minga 0.0.1"),
        ("./absent", "could not be started to reach host a"),
        ("false", "no agent runs on host"),
    ],
)
def test_a_host_that_does_not_do_its_part(files: Path, shell: str, words: str) -> None:
    with nothing_written(files):
        said = in_process("bcast", "file", "--hosts", "hosts", "--to", f"{files}/new-{{host}}", "--shell", shell)
    assert said.status == 1
    assert words in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["absent", "--hosts", "hosts"], "there is no file absent"),
        (["fil", "--hosts", "hosts"], "did you mean 'file'"),
        (["/dev/null", "--hosts", "hosts"], "neither a file nor a directory"),
        (["-", "--hosts", "hosts", "--from", "a"], "can be sent"),
        (["file", "--hosts", "hosts", "--compress", "zst"], "did you mean 'zstd'"),
        (["file"], "either --hosts or --lab"),
        (["file", "--hosts", "hosts", "--lab", "x"], "either --hosts or --lab"),
        (["file", "--hosts", "nowhere"], "cannot be read"),
        (["file", "--hosts", "hosts", "--route", "multicats"], "did you mean 'multicast'"),
        (["file", "--hosts", "hosts", "--rate", "fast"], "--rate"),
        (["file", "--hosts", "hosts", "--rate", "1 b/s"], "--rate"),
        (["file", "--hosts", "hosts", "--network", "10.0.0.0/99"], "--network"),
        (["file", "--hosts", "hosts", "--on-loss", "cry"], "--on-loss"),
        (["file", "--hosts", "hosts", "--dead-timeout", "0"], "--dead-timeout"),
        (["file", "--hosts", "hosts", "--from", "c"], "'c' is not listed"),
        (["file", "--hosts", "hosts", "--shell", ""], "--shell"),
        (["file", "--hosts", "hosts", "--late", "-1"], "--late"),
        (["file", "--hosts", "alone"], "no host is listed besides this machine"),
        (["file", "--lab", "no-such-lab"], "the lab 'no-such-lab' is not up"),
    ],
)
def test_what_cannot_be_meant(files: Path, words: list[str], said: str) -> None:
    with nothing_written(files):
        found = in_process("bcast", *words, "--to", "/tmp/x")
    assert found.status == 2, found.err
    assert said in found.err


# Files ----------------------------------------------------------------------------------------------------------------
def arriving(path: Path, size: int, mode: int = 0o644, *, replace: bool = False) -> Arriving:
    """A file of so many bytes that arrives."""
    return Arriving(path, Manifest("file", (Entry("f", "", mode, size),)), replace=replace)


def fill(file: Arriving, data: bytes) -> None:
    """Bring the whole file."""
    if data:
        file.store(Extent(0, len(data), hashlib.sha256(data).digest()), data)
    file.complete(len(data))


@pytest.mark.parametrize("size", [0, 1, 5000])
def test_a_file_appears_when_it_is_whole(tmp_path: Path, size: int) -> None:
    path = tmp_path / "new"
    file = arriving(path, size, 0o640)
    fill(file, b"x" * size)
    assert not path.exists()
    file.keep()
    assert path.read_bytes() == b"x" * size
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_left_of_a_file_of_which_nothing_came(tmp_path: Path) -> None:
    file = arriving(tmp_path / "new", 100)
    with pytest.raises(RunError, match="differ from the data that were sent"):
        file.store(Extent(0, 3, bytes(32)), b"abc")
    file.drop()
    file.drop()
    assert not list(tmp_path.iterdir())


def test_more_than_the_disk_holds(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written"):
        arriving(tmp_path / "new", 1 << 60)
    assert not list(tmp_path.iterdir())


def test_a_file_that_changes_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    source = Source.open(path)
    source.check()
    path.write_text("after that")
    with pytest.raises(RunError, match="was changed while it was sent"):
        source.check()
    source.close()


class Whole:
    """A group whose root sends an empty file."""

    route = "chain"
    rejected_routes: ClassVar[dict[str, str]] = {}
    lost = ()
    statistics = Statistics("chain")

    def __init__(self, announced: Any) -> None:
        self.messages = [announced, b"[[]]", content._HEAD.pack(0, 0, 0, 0, hashlib.sha256().digest())]

    def __enter__(self) -> Whole:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def bcast(self, data: object = None) -> bytes:
        return self.messages.pop(0)


def received(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, announced: Any, **wishes: Any) -> tuple[Any, list[bool]]:
    """Let an agent receive what is announced; return its last line, and at each question whether the file was there."""
    packed = json.dumps({"kind": "file", "entries": [announced]}).encode()
    monkeypatch.setattr(Group, "by_lines", lambda *_: Whole(packed))
    answers = io.StringIO()
    agent = Agent(answers)
    there: list[bool] = []

    def ask(value: object) -> list[Any]:
        there.append((tmp_path / "here/new").exists())
        return [["file", None], [None, None]] if len(there) == 1 else [[None, []], value or [None, []]]

    def ask_plainly(value: object) -> list[Any]:
        return ask(value) if len(there) != 1 else [ask(value), None, None][1:]

    monkeypatch.setattr(agent, "ask", ask_plainly)
    order = {"rank": 1, "size": 2, "key": "00" * 32, "names": ["a", "b"], "to": f"{tmp_path}/here", "force": False}
    agent.lines.put(
        {
            **order,
            "name": "new",
            "resume": True,
            "compress": "off",
            "beat": 60,
            "wishes": {"on_loss": "raise", **wishes},
        }
    )
    agent.run()
    return json.loads(answers.getvalue().splitlines()[-1]), there


@pytest.mark.parametrize(("on_loss", "questions"), [("raise", 5), ("exclude", 4)])
def test_nobody_names_a_file_before_all_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_loss: str, questions: int
) -> None:
    (tmp_path / "here").mkdir()
    last, there = received(tmp_path, monkeypatch, ["f", "", 0o644, 0, ""], on_loss=on_loss)
    assert there == [False] * questions
    assert (tmp_path / "here/new").read_bytes() == b""
    assert last["done"]["sha256"] == hashlib.sha256().hexdigest()


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        (["f", "", 0o6777, 0, ""], ""),
        (["f", "", 0o100777, 0, ""], ""),
        (["f", "../elsewhere/authorized_keys", 0o777, 0, ""], "the sender announced"),
        (["f", "/etc/passwd", 0o777, 0, ""], "the sender announced"),
        (["d", "", 0o777, 0, ""], "the sender announced"),
        (["l", "", 0o777, 0, "/etc/passwd"], "the sender announced"),
        (["f", "", 0o777, -1, ""], "the sender announced"),
        (["f", "", 0o777, True, ""], "the sender announced"),
        (["f", "", 0o777, "4", ""], "the sender announced"),
        (["f", "", 0o777, 1.5, ""], "the sender announced"),
        (["f", "", 0o777, None, ""], "the sender announced"),
        (["f", "", 0o777, 1 << 80, ""], "the sender announced"),
        (["f", "", 0o777, 1 << 55, ""], "cannot be written"),
        (["f", "", 0o777, 5, ""], "parts of the file were not sent"),
        (["f", "", -1, 0, ""], "the sender announced"),
        (["f", "", "0644", 0, ""], "the sender announced"),
    ],
)
def test_a_receiver_decides_what_is_written_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[Any], wrong: str
) -> None:
    """Whatever a sender announces, it is one new file of the name and in the place that the receiver was told."""
    import os

    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "here").mkdir()
    before = os.umask(0o027)
    try:
        last, _ = received(tmp_path, monkeypatch, said)
    finally:
        os.umask(before)
    found = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")]
    if wrong:
        assert wrong in last["failed"]
        assert sorted(found) == ["elsewhere", "here"]
    else:
        assert "done" in last, last
        assert sorted(found) == ["elsewhere", "here", "here/new"]
        assert (tmp_path / "here/new").stat().st_mode & 0o7777 == 0o750


@pytest.mark.parametrize(
    "name", ["", ".", "..", "/etc/passwd", "../x", "a/b", "a\\b", "a\nb", "a\0b", "\x1b[2J", "\udc80", "n" * 256, 3]
)
def test_names_that_are_more_than_a_name(tmp_path: Path, name: Any) -> None:
    with pytest.raises(CaseError, match="not the plain name of a file"):
        destination(f"{tmp_path}/", name, "h")
    with pytest.raises(CaseError, match="not the plain name of a file"):
        destination(f"{tmp_path}/x-{{host}}", "file", name)
    assert destination(f"{tmp_path}/", "n" * 255, "h").name == "n" * 255
    arriving(tmp_path / ("n" * 255), 0).keep()
    with pytest.raises(CaseError, match="null"):
        destination(f"{tmp_path}/a\0b", "file", "h")


def test_what_is_in_a_files_place_stays_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    import os

    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "link").symlink_to(secret)
    (tmp_path / "broken").symlink_to(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    for name in ("secret", "link", "broken"):
        with pytest.raises(CaseError, match="exists already"):
            destination(f"{tmp_path}/{name}", "file", "h")
        path = destination(f"{tmp_path}/{name}", "file", "h", replace=True)
        if name != "secret":
            arriving(path, 0, replace=True).keep()
            assert not path.is_symlink(), "the link itself is replaced, never what it leads to"
    assert secret.read_text() == "secret"
    assert not (tmp_path / "absent").exists()
    for name in ("pipe", "../../../../../../../../../../dev/null"):
        with pytest.raises(CaseError, match="is a device"):
            destination(f"{tmp_path}/{name}", "file", "h", replace=True)
    late = arriving(tmp_path / "late", 0)
    (tmp_path / "late").write_text("somebody's")
    with pytest.raises(RunError, match="created by another program"):
        late.keep()
    assert (tmp_path / "late").read_text() == "somebody's"
    assert not list(tmp_path.glob(".*"))


def test_where_a_file_goes(tmp_path: Path) -> None:
    assert destination(str(tmp_path), "name", "h") == tmp_path / "name"
    assert destination(f"{tmp_path}/x-{{host}}", "name", "h") == tmp_path / "x-h"
    with pytest.raises(CaseError, match="no directory"):
        destination(f"{tmp_path}/absent/", "name", "h")
    (tmp_path / "name").mkdir()
    with pytest.raises(CaseError, match="is a directory"):
        destination(str(tmp_path), "name", "h")
