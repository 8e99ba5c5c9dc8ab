"""``minga lab``: what a person types and reads."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import command, in_process
from minga.errors import LaunchError
from minga.lab.cgroups import find_hierarchies
from minga.lab.cli.completion import labs
from minga.lab.cluster import existing, find, lab_rights
from missing import missing
from thinned import thinned

QUOTA = [] if os.geteuid() == 0 or find_hierarchies() else ["--no-quota"]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of a small lab; whatever is up at the end is removed."""
    try:
        lab_rights()
    except LaunchError as error:
        pytest.skip(missing(error))
    monkeypatch.setenv("MINGA_LAB_STATE", str(tmp_path / "labs"))
    path = tmp_path / f"c{os.getpid()}.toml"
    path.write_text('rate = "100 Mb/s"\n[[nodes]]\nname = "new"\nshare = 0.4\n[[nodes]]\nname = "old"\nshare = 0.2\n')
    yield path
    for cluster in existing():
        cluster.down()


def remains(lab: Path) -> list[str]:
    return [path.name for path in Path("/run/netns").glob(f"minga-{lab.stem}*")]


def test_a_lab_is_built_shown_and_removed(lab: Path) -> None:
    assert in_process("lab", "status").out == "no lab is up\n"
    built = in_process("lab", "up", lab, *QUOTA)
    assert built.status == 0, built.err
    assert re.search(r"old +10\.77\.0\.2 .* 100 Mb/s", built.out)
    status = json.loads(in_process("lab", "status", "--json").out)
    assert [(one["name"], one["state"]) for one in status] == [(lab.stem, "up")]
    assert f"{lab.stem}    2 nodes  up" in in_process("lab", "list").out
    again = in_process("lab", "up", lab, *QUOTA)
    assert (again.status, f"minga lab down {lab.stem}" in again.err) == (1, True)
    assert in_process("lab", "down", lab.stem).out == f"{lab.stem} is removed\n"
    gone = in_process("lab", "down", lab)
    assert (gone.status, "is not up" in gone.err) == (2, True)
    assert remains(lab) == []


def test_a_lab_that_cannot_be_read_does_not_hide_the_others(lab: Path, tmp_path: Path) -> None:
    assert in_process("lab", "up", lab, *QUOTA).status == 0
    broken = tmp_path / "labs" / "bad" / "state.json"
    broken.parent.mkdir()
    broken.write_text('{"version": 1, "instance"')
    listed = in_process("lab", "list")
    assert listed.status == 0, listed
    assert re.search(rf"{lab.stem} +2 nodes  up", listed.out)
    assert re.search(r"bad +\? nodes  unreadable; see `minga lab status bad`", listed.out)
    shown = in_process("lab", "status", "--json")
    assert [one["name"] for one in json.loads(shown.out)] == [lab.stem]
    assert str(broken) in shown.err
    named = in_process("lab", "status", "bad")
    assert (named.status, named.out) == (1, "")
    assert f"rm -r {broken.parent}" in named.err
    gone = in_process("lab", "down", "--all")
    assert (gone.status, str(broken) in gone.err) == (1, True)
    assert remains(lab) == []
    assert broken.exists()


def test_the_shipped_labs_are_listed(lab: Path) -> None:
    assert "three-ages" in in_process("lab", "list").out


GREETING = f"""hostname
{sys.executable} -c 'import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(bytes(500), ("new", 9))'
exit 3"""


def test_a_lab_is_there_for_the_time_of_a_program(lab: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = in_process("lab", "run", lab, "--node", "old", *QUOTA, "--", "sh", "-c", GREETING)
    assert done.status == 3
    assert capfd.readouterr().out.startswith("old\n")
    sent = re.search(r"sent over the links: new \d+ B, old (\d+) B", done.err)
    assert sent is not None
    assert int(sent[1]) >= 500
    assert (remains(lab), existing()) == ([], [])


def test_a_lab_that_is_up_is_used_and_kept(lab: Path) -> None:
    assert in_process("lab", "run", lab, "--keep", "--node", "old", *QUOTA, "--", "true").status == 0
    assert find(lab.stem) is not None
    assert in_process("lab", "run", lab, "--node", "new", *QUOTA, "--", "true").status == 0
    assert find(lab.stem) is not None
    lab.write_text(lab.read_text().replace("0.4", "0.3"))
    other = in_process("lab", "run", lab, "--node", "new", *QUOTA, "--", "true")
    assert (other.status, "another description" in other.err) == (1, True)


@pytest.mark.parametrize("number", thinned([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], signal.SIGINT))
def test_an_interrupted_run_leaves_nothing(lab: Path, number: signal.Signals) -> None:
    words = command("lab", "run", lab, "--node", "old", *QUOTA, "--", "sh", "-c", "echo begun; exec sleep 60")
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        if number == signal.SIGINT:
            os.killpg(child.pid, number)  # as a terminal does
        else:
            child.send_signal(number)
        _, said = child.communicate(timeout=120)
    assert child.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said
    assert (remains(lab), existing()) == ([], [])


@pytest.mark.slow
def test_a_killed_run_is_cleaned_up_by_the_next(lab: Path) -> None:
    words = command("lab", "run", lab, "--node", "old", *QUOTA, "--", "sh", "-c", "echo $$; exec sleep 60")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        orphan = int(child.stdout.readline())
        child.kill()
    assert "has ended" in in_process("lab", "status").out
    assert "was left behind and is removed" in in_process("lab", "list").out
    end = time.monotonic() + 60
    while Path(f"/proc/{orphan}").exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert not Path(f"/proc/{orphan}").exists()
    assert (remains(lab), existing()) == ([], [])


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["up", "three-agse"], 2, "did you mean 'three-ages'"),
        (["down", "nothing"], 2, "is not up"),
        (["down"], 2, "--all"),
        (["status", "nothing"], 2, "is not up"),
        (["run", "three-ages"], 2, "PROGRAM"),
    ],
)
def test_a_wrong_word_is_explained(lab: Path, words: list[str], status: int, said: str) -> None:
    done = in_process("lab", *words)
    assert (done.status, said in done.err) == (status, True), done.err


@pytest.mark.slow
def test_a_wrong_node_or_program_is_explained(lab: Path) -> None:
    wrong = in_process("lab", "run", lab, "--node", "odl", *QUOTA, "--", "true")
    assert (wrong.status, "did you mean 'old'" in wrong.err) == (2, True)
    assert "sent over the links" not in wrong.err  # nothing was started
    assert in_process("lab", "run", lab, "--node", "old", *QUOTA, "--", "sh", "-c", "kill -9 $$").status == 137
    assert in_process("lab", "run", lab, "--node", "old", *QUOTA, "--", "no-such-program").status == 127
    assert (remains(lab), existing()) == ([], [])


@pytest.mark.slow
def test_an_interrupt_ends_the_program_and_not_a_lab_that_was_up(lab: Path) -> None:
    assert in_process("lab", "up", lab, *QUOTA).status == 0
    cluster = find(lab.stem)
    assert cluster is not None
    with subprocess.Popen(cluster.command("old", ["sleep", "60"]), start_new_session=True) as bystander:
        words = command("lab", "run", lab, "--node", "old", "--", "sh", "-c", "echo begun; exec sleep 60")
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "begun\n"
            child.terminate()
            assert child.wait(30) == 130
        assert cluster.processes()[1] == {bystander.pid}
        bystander.kill()
    assert cluster.fault() is None


def test_tab_offers_labs() -> None:
    assert labs("thr") == ["three-ages"]
