"""Real labs: what nodes see, what their links and quotas do, and that nothing of them is ever left."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import minga
from minga.errors import CaseError, LaunchError, RunError
from minga.lab import cluster as clusters
from minga.lab.cgroups import find_hierarchies
from minga.lab.cluster import Cluster, existing, find, laboratory, remove_stale, up
from minga.lab.config import Lab, LabNode
from minga.lab.state import locked, read_state, write_state

TWO = Lab("two", (LabNode("fast", 0.3, None, 100e6), LabNode("slow", 0.1, None, 100e6)), rate=100e6)
HUB = replace(TWO, wiring="hub", rate=10e6)

SERVER = """
import socket
server = socket.create_server(("", 5000))
print("ready", flush=True)
connection, _ = server.accept()
count = 0
while some := connection.recv(65536):
    count += len(some)
print(count)
"""
CLIENT = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], 5000))
begun = time.perf_counter()
connection.sendall(bytes(int(sys.argv[2])))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
print(time.perf_counter() - begun)
"""


def named(lab: Lab, word: str) -> Lab:
    """The lab under a name that no other test has."""
    return replace(lab, name=f"t{os.getpid()}-{word}")


def left_by(word: str) -> list[str]:
    """Whatever there is on this machine of this test's labs with such a word in their names."""
    name = f"t{os.getpid()}-{word}"
    found = [str(path) for path in Path("/run/netns").glob(f"minga-{name}*")]
    for place in {p for h in [find_hierarchies()] if h for p in (h.cpu, h.memory)}:
        found += [str(path) for path in place.glob(f"minga-{name}*")]
    for path in Path("/proc").glob("[0-9]*"):
        try:
            known = (path / "environ").read_bytes(), (path / "cmdline").read_bytes()
        except OSError:
            continue
        if path.name != str(os.getpid()) and any(name.encode() in text for text in known):
            found.append(str(path))
    return found


def said(cluster: Cluster, node: int | str, *words: str) -> str:
    """What a program on a node prints."""
    done = cluster.execute(node, words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return str(done.stdout).strip()


def stream(cluster: Cluster, size: int) -> float:
    """Seconds to send so many bytes by TCP from node 1 to node 0."""
    server = subprocess.Popen(cluster.command(0, [sys.executable, "-c", SERVER]), stdout=subprocess.PIPE, text=True)
    with server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        seconds = float(said(cluster, 1, sys.executable, "-c", CLIENT, cluster.names[0], str(size)))
        assert int(server.stdout.read()) == size
    return seconds


@pytest.fixture(scope="module")
def two(rights: dict[str, Any]) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MINGA_LAB_STATE", raising=False)
        with laboratory(named(TWO, "shared"), **rights) as cluster:
            yield cluster


# What nodes are -------------------------------------------------------------------------------------------------------
def test_nodes_have_names_addresses_and_one_interface(two: Cluster) -> None:
    for number, name in enumerate(("fast", "slow")):
        shown = said(two, number, "sh", "-c", "hostname; ls /sys/class/net; getent hosts fast slow; pwd")
        assert shown.split() == [name, "eth0", "lo", "10.77.0.1", "fast", "10.77.0.2", "slow", os.getcwd()]
    assert two.node("slow") == two.node("10.77.0.2") == two.node("1") == two.node(1) == 1


def test_a_command_has_its_environment_and_status(two: Cluster) -> None:
    words = two.command("slow", ["sh", "-c", "echo $GREETING from $MINGA_LAB_NODE; exit 3"], {"GREETING": "good day"})
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("good day from 1\n", 3)


def test_a_command_becomes_its_program(two: Cluster) -> None:
    """So that signals reach it, and its number is that of the process that was started."""
    child = subprocess.Popen(two.command(0, ["sh", "-c", "echo $$; exec sleep 60"]), stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout is not None
        assert int(child.stdout.readline()) == child.pid
        assert child.pid in two.processes()[0]
        child.terminate()
        assert child.wait(10) == -signal.SIGTERM


def test_an_unknown_node_is_told(two: Cluster) -> None:
    for wrong in ("slwo", 2, -1):
        with pytest.raises(CaseError, match="its nodes are fast, slow"):
            two.command(wrong, ["true"])


# What links and quotas do ---------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_counters_grow_by_what_is_sent_and_the_rate_holds(two: Cluster) -> None:
    size = 1_000_000
    before = two.counters()
    seconds = stream(two, size)
    after = two.counters()
    sent = after[1].sent_bytes - before[1].sent_bytes
    assert size < sent < 1.2 * size
    assert size < after[0].received_bytes - before[0].received_bytes < 1.2 * size
    packets = after[1].sent_packets - before[1].sent_packets
    assert sent / packets <= 1514  # no frame longer than Ethernet's: segments are not left to a card
    assert seconds > 0.9 * (size - 64_000) * 8 / 100e6  # what queues and buckets hold is not waited for


def test_nothing_is_sent_by_itself(rights: dict[str, Any], own_labs: Path) -> None:
    with laboratory(named(TWO, "quiet"), **rights) as cluster:
        time.sleep(0.3)
        assert all(not any(counts) for counts in cluster.counters().values())


@pytest.mark.slow
def test_a_hub_has_one_rate_for_all(rights: dict[str, Any], own_labs: Path) -> None:
    size = 200_000
    with laboratory(named(HUB, "hub"), **rights) as cluster:
        before = cluster.counters()
        assert stream(cluster, size) > 0.9 * (size - 64_000) * 8 / 10e6
        assert cluster.counters()[1].sent_bytes - before[1].sent_bytes > size
        counts = cluster.status()["hub"]
        assert counts["frames"] > size / 1514
        hub = cluster.state.hub
        assert hub is not None
        if not rights["rootless"]:  # its latency would else be that of the nodes' quotas
            assert os.sched_getscheduler(hub.pid) == os.SCHED_RR
        os.kill(hub.pid, signal.SIGKILL)
        end = time.monotonic() + 60
        while cluster.fault() is None and time.monotonic() < end:
            time.sleep(0.01)
        assert cluster.status()["state"] == "its hub has ended"
    assert left_by("hub") == []


@pytest.mark.slow
@pytest.mark.usefixtures("quotas")
def test_quotas_bite(two: Cluster) -> None:
    """Also on a busy machine nobody gets more than its share; how much less depends on who else computes."""
    burn = """
        import time
        begun, used = time.perf_counter(), time.process_time()
        while time.perf_counter() - begun < 1.0:
            pass
        print((time.process_time() - used) / (time.perf_counter() - begun))
    """
    words = [sys.executable, "-c", textwrap.dedent(burn)]
    children = [subprocess.Popen(two.command(n, words), stdout=subprocess.PIPE, text=True) for n in (0, 1)]
    fast, slow = (float(child.communicate(timeout=60)[0]) for child in children)
    assert slow < 1.2 * 0.1
    assert 1.2 * slow < fast < 1.2 * 0.3
    assert two.status()["nodes"][1]["throttled_seconds"] > 0.3


def test_a_node_has_the_cores_that_its_share_needs(two: Cluster) -> None:
    kept = [node["cpus"] for node in two.status()["nodes"]]
    for node, cpus in enumerate(kept):
        shown = said(two, node, "taskset", "--cpu-list", "--pid", str(os.getpid()))  # of somebody outside
        inside = said(two, node, "sh", "-c", "taskset --cpu-list --pid $$")
        assert inside.rpartition(" ")[2] == (str(cpus[0]) if cpus else shown.rpartition(" ")[2])


@pytest.mark.usefixtures("quotas")
def test_memory_is_limited(rights: dict[str, Any], own_labs: Path) -> None:
    lab = named(Lab("x", (LabNode("small", 1.0, 64 << 20),)), "memory")
    with laboratory(lab, **rights) as cluster:
        fits, not_fits = ([sys.executable, "-c", f"bytearray({size} << 20)"] for size in (20, 200))
        assert cluster.execute(0, fits).returncode == 0
        assert cluster.killed_for_memory() == {"small": 0}
        assert cluster.execute(0, not_fits).returncode == -signal.SIGKILL
        assert cluster.killed_for_memory() == {"small": 1}
        with pytest.raises(RunError, match="node 'small' ran out of memory: it has 67 MB"):
            cluster.run(not_fits)


def test_a_share_can_be_changed(rights: dict[str, Any], own_labs: Path) -> None:
    lab = named(replace(TWO, socket_buffer=16 << 10), "share")
    with laboratory(lab, **rights) as cluster:
        assert said(cluster, 1, "cat", "/proc/sys/net/ipv4/tcp_wmem").split() == ["4096", "16384", "16384"]
        if not rights["quota"]:
            with pytest.raises(LaunchError, match="without quotas"):
                cluster.set_share("slow", 0.5)
            return
        cluster.set_share("slow", 0.5)
        assert [node["cores"] for node in cluster.status()["nodes"]] == pytest.approx([0.3, 0.5])
        for wrong in (0.0, -1.0, float("nan"), float("inf"), 1.5):  # it keeps to one core
            with pytest.raises(CaseError, match=r"from 0\.001 to 1"):
                cluster.set_share("slow", wrong)
        for directory in cluster.state.groups[1]:
            Path(directory).rmdir()
        assert "its control group" in str(cluster.fault())
        with pytest.raises(LaunchError, match="quota cannot be set"):
            cluster.set_share("slow", 0.5)


@pytest.mark.usefixtures("quotas")
def test_a_share_that_cannot_be_given_is_told(rights: dict[str, Any], own_labs: Path) -> None:
    lab = named(Lab("x", (LabNode("fast"), LabNode("snail", 1e-5))), "snail")
    with pytest.raises(CaseError, match=r"'snail' would get 1e-05 of a core, and the minimum is 0\.001"):
        up(lab, **rights)
    assert left_by("snail") == []


def test_a_status_is_json(two: Cluster) -> None:
    status = json.loads(json.dumps(two.status()))
    assert (status["state"], status["wiring"], len(status["nodes"])) == ("up", "switch", 2)
    assert [node["address"] for node in status["nodes"]] == ["10.77.0.1", "10.77.0.2"]
    assert status["nodes"][0].keys() >= {"sent_bytes", "received_bytes", "processes", "rate", "share"}


def sleeper_in(cluster: Cluster) -> subprocess.Popen[bytes]:
    """A program that sleeps on the first node of a lab; returns once the program has entered the lab."""
    child = subprocess.Popen(cluster.command(0, ["sh", "-c", "echo here; exec sleep 60"]), stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout as lines:
        assert lines.readline() == b"here\n"
    return child


# That nothing is left -------------------------------------------------------------------------------------------------
def test_a_lab_goes_with_all_that_runs_in_it(rights: dict[str, Any], own_labs: Path) -> None:
    lab = named(TWO, "goes")
    cluster = up(lab, **rights)
    stubborn = ["sh", "-c", "trap '' TERM; echo here; while :; do sleep 0.1; done"]
    children = [subprocess.Popen(cluster.command(node, stubborn), stdout=subprocess.PIPE) for node in (0, 1)]
    forgetful = subprocess.Popen(cluster.command(0, ["env", "-i", "/bin/sleep", "60"]), start_new_session=True)
    for child in children:
        with child.stdout as lines:  # a shell that has not set its trap yet ends by itself
            assert lines.readline() == b"here\n"
    while len(cluster.processes()[0]) < 2:
        time.sleep(0.01)
    assert find(lab) is not None
    assert [other.name for other in existing()] == [lab.name]
    with pytest.raises(LaunchError, match="is already up"):
        up(lab, **rights)
    cluster.down()
    assert all(child.wait(60) < 0 for child in (*children, forgetful))
    assert (left_by("goes"), find(lab), existing()) == ([], None, [])
    assert [path.name for path in own_labs.iterdir()] == ["lock"]
    cluster.down()  # again: nothing is there, nothing happens


def test_labs_do_not_meet(rights: dict[str, Any], own_labs: Path) -> None:
    lab = named(TWO, "twice")
    with laboratory(lab, **rights) as one, laboratory(lab, **rights) as other:
        assert one.name != other.name
        before = other.counters()
        stream(one, 10_000)
        assert other.counters() == before


@pytest.mark.few(3)
@pytest.mark.parametrize("stage", ["make_namespaces", "make_links", "make_group", "start_hub", "write_entrance"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), LaunchError("no luck")])
def test_a_failure_while_building_leaves_nothing(
    stage: str,
    error: BaseException,
    rights: dict[str, Any],
    own_labs: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if stage == "make_group":
        request.getfixturevalue("quotas")
    lab = named(HUB if stage in ("start_hub", "write_entrance") else TWO, "fails")
    real = getattr(clusters, stage)

    def fail(*arguments: Any) -> None:
        real(*arguments)
        raise error

    monkeypatch.setattr(clusters, stage, fail)
    with pytest.raises(type(error)):
        up(lab, **rights)
    assert (left_by("fails"), find(lab)) == ([], None)


@pytest.mark.usefixtures("rights")
def test_where_no_state_can_be_kept_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MINGA_LAB_STATE", str(tmp_path / "file"))
    for act in (lambda: up(TWO), remove_stale):
        with pytest.raises(LaunchError, match="set MINGA_LAB_STATE"):
            act()


@pytest.mark.parametrize("name", ["state.json.part", "inside", "hub.log"])
def test_a_full_disk_leaves_nothing(
    name: str, rights: dict[str, Any], own_labs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, real = named(HUB, "full"), Path.open

    def full(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(LaunchError, match="No space left on device"):
        up(lab, **rights)
    assert (left_by("full"), find(lab)) == ([], None)


KILLED = """
import os, signal
from minga.lab import cluster
from minga.lab.config import Lab
cluster.write_entrance = lambda state: os.kill(os.getpid(), signal.SIGKILL)
cluster.up(Lab.from_dict({lab!r}), **{rights!r})
"""


@pytest.mark.slow
def test_the_lock_of_a_killed_builder_is_held_until_its_tools_have_ended(own_labs: Path) -> None:
    tool = ["sh", "-c", f"kill -9 $PPID; sleep 0.5; touch {own_labs}/tool-has-ended"]
    code = f"from minga.lab import commands, state\nwith state.locked(): commands.output({tool})"
    subprocess.run([sys.executable, "-c", code], check=False)
    with locked():
        assert (own_labs / "tool-has-ended").exists()


@pytest.mark.few(2)
@pytest.mark.parametrize("remover", ["up", "down", "stale"])
def test_what_a_killed_builder_left_is_removed(remover: str, rights: dict[str, Any], own_labs: Path) -> None:
    lab = named(HUB, f"killed-{remover}")
    code = KILLED.format(lab=lab.as_dict(), rights=rights)
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    ruin = find(lab)
    assert ruin is not None
    assert "interrupted" in str(ruin.fault())
    if remover == "up":
        up(lab, **rights).down()
    elif remover == "down":
        ruin.down()
    else:
        assert remove_stale() == [lab.name]
    assert (left_by(f"killed-{remover}"), find(lab)) == ([], None)


def test_a_lab_whose_owner_was_killed_is_removed_by_the_next(rights: dict[str, Any], own_labs: Path) -> None:
    lab = named(TWO, "orphan")
    code = KILLED.replace("write_entrance = lambda state:", "output = lambda words:")
    code = code.replace("**{rights", "temporary=True, **{rights").format(lab=lab.as_dict(), rights=rights)
    subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    state = read_state(lab.name)
    assert state is not None
    assert state.owner is not None
    write_state(replace(state, built=True))  # as if it had been killed later
    assert "has ended" in str(find(lab).fault())  # type: ignore[union-attr]
    with laboratory(named(TWO, "next"), **rights):
        assert find(lab) is None
        assert left_by("orphan") == []


def test_half_a_lab_is_removed_too(rights: dict[str, Any], own_labs: Path) -> None:
    lab = named(HUB, "half")
    cluster = up(lab, **rights)
    state = cluster.state
    if state.holder is None:
        subprocess.run(["ip", "netns", "delete", state.namespace(0)], check=True)
    else:
        os.kill(state.holder.pid, signal.SIGKILL)
    for directory in state.groups[1] if state.groups else ():
        Path(directory).rmdir()
    time.sleep(0.05)
    assert cluster.fault() is not None
    again = up(lab, **rights)
    assert again.fault() is None
    again.down()
    assert left_by("half") == []


def test_a_lab_from_before_a_restart_is_forgotten(rights: dict[str, Any], own_labs: Path) -> None:
    """Its numbers of processes may belong to others now: nothing is ended."""
    lab = named(TWO, "restart")
    cluster = up(lab, **rights)
    bystander = sleeper_in(cluster)
    try:
        write_state(replace(cluster.state, boot="another"))
        assert "restarted" in str(find(lab).fault())  # type: ignore[union-attr]
        assert remove_stale() == [lab.name]
        assert find(lab) is None
        assert bystander.poll() is None
    finally:
        clusters.states.folder().mkdir(exist_ok=True)
        write_state(cluster.state)
        cluster.down()
        bystander.wait(5)
    assert left_by("restart") == []


def test_what_others_made_is_not_touched(rights: dict[str, Any], own_labs: Path) -> None:
    if rights["rootless"]:
        pytest.skip("makes a network namespace outside of labs: run the tests as root")
    lab = named(TWO, "foreign")
    name = f"minga-{lab.name}-1"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        with pytest.raises(LaunchError, match="ip netns delete"):
            up(lab, **rights)
        assert Path("/run/netns", name).exists()
        assert left_by("foreign") == [f"/run/netns/{name}"]
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


# Without root ---------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_lab_without_root_works_alike(rights: dict[str, Any], own_labs: Path) -> None:
    lab = named(HUB, "holder")
    with laboratory(lab, quota=rights["quota"], rootless=True) as cluster:
        assert said(cluster, 1, "hostname") == "slow"
        before = cluster.counters()
        stream(cluster, 20_000)
        assert cluster.counters()[1].sent_bytes - before[1].sent_bytes > 20_000
        assert cluster.status()["root"] is False
        sleeper = sleeper_in(cluster)
    assert sleeper.wait(5) < 0
    assert left_by("holder") == []


ORDINARY = """
import os, pathlib, shutil, sys, tempfile
from minga.errors import LaunchError
from minga.lab.cluster import laboratory, up
from minga.lab.config import read_lab
for group in sys.argv[1:]:
    pathlib.Path(group, "cgroup.procs").write_text(str(os.getpid()))
os.setgroups([]), os.setresgid(65534, 65534, 65534), os.setresuid(65534, 65534, 65534)
os.environ["MINGA_LAB_STATE"] = place = tempfile.mkdtemp()
sys.executable = shutil.which("python3", path="/usr/bin:/bin")  # ours may lie where only root comes
quota = len(sys.argv) > 1
if not quota:
    try:
        up(read_lab("three-ages"))
    except LaunchError as error:
        print(error)
with laboratory("three-ages", quota=quota) as cluster:
    print("cores", [node["cores"] for node in cluster.status()["nodes"]])
    done = cluster.execute("old", ["sh", "-c", "hostname; id -u"], capture_output=True, text=True)
    print(done.stdout.split(), done.stderr)
print(os.listdir(place))
shutil.rmtree(place)
"""


@contextlib.contextmanager
def package_for_everybody() -> Iterator[str]:
    """Yield a directory with a copy of minga that any user can read: the clone may lie where only its owner comes."""
    place = Path(tempfile.mkdtemp(prefix="minga-for-everybody-"))
    try:
        place.chmod(0o755)
        if any(not parent.stat().st_mode & stat.S_IXOTH for parent in place.parents):
            pytest.skip(f"{place.parent} is closed to other users: set TMPDIR to a directory that everybody can enter")
        package = Path(minga.__file__).parent
        shutil.copytree(package, place / "minga", ignore=shutil.ignore_patterns("__pycache__"))
        for path in place.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield str(place)
    finally:
        shutil.rmtree(place)


def as_ordinary_user(*groups: Path) -> str:
    """Build a lab as nobody in particular, in control groups that were given to that user, and return the output."""
    if os.geteuid() != 0 or not Path("/usr/bin/python3").exists():
        pytest.skip("becomes another user, with /usr/bin/python3: run the tests as root where that exists")
    with package_for_everybody() as place:
        words = [sys.executable, "-c", ORDINARY, *map(str, groups)]
        environment = {**os.environ, "PYTHONPATH": place}
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/", env=environment)
    if "user namespaces, which are not permitted" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    assert "['old', '0']" in done.stdout  # root inside
    assert "['lock']" in done.stdout  # nothing is left
    return done.stdout


@pytest.mark.slow
def test_an_ordinary_user_has_labs_without_quotas() -> None:
    said = as_ordinary_user()
    assert "quotas not permitted" in said
    assert "--no-quota" in said
    assert "cores [None, None, None]" in said


@pytest.mark.slow
def test_an_ordinary_user_has_quotas_where_groups_were_delegated() -> None:
    found = find_hierarchies()
    if os.geteuid() != 0 or found is None or found.version != 1:
        pytest.skip("gives control groups of version 1 away: run the tests as root on a system that has these")
    groups = [place / f"minga-test-{os.getpid()}" for place in (found.cpu, found.memory)]
    try:
        for group in groups:
            group.mkdir()
            for path in (group, *group.iterdir()):
                os.chown(path, 65534, 65534)
        assert "None" not in as_ordinary_user(*groups)
    finally:
        for group in groups:
            group.rmdir()
