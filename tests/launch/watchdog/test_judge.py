"""Who is lost is decided by limits on silence, with no clock but the one that is given; short faults heal."""

from __future__ import annotations

from minga.launch.watchdog.judge import Judge
from minga.launch.watchdog.lookout import GONE, RUNS, STOPPED, HostReport, RankReport
from minga.launch.watchdog.loss import Loss

LIMIT = 10.0


class Cluster:
    """Two hosts, ``ant`` where the run was started and ``bee``, with a rank each, whose reports come every second."""

    def __init__(self) -> None:
        self.judge = Judge(["ant", "bee"], "ant", LIMIT, 0.0)
        self.now = 0.0
        self.silent: set[str] = set()
        self.states = {0: RUNS, 1: RUNS}
        self.dead: set[int] = set()
        self.memory = False
        self.phase = "stepping"
        self.step = 0
        self.steps = True
        self.free = 1 << 40
        self.said: list[str] = []
        self.loss: Loss | None = None
        self.lost_at = 0.0

    def report(self, rank: int) -> HostReport:
        life = (0, 0) if self.states[rank] != RUNS or rank in self.dead else (int(self.now), 0)
        one = RankReport(rank, 100 + rank, self.states[rank], life, (self.step, 0), self.phase, self.memory)
        return HostReport((one,), self.free)

    def go_on(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.now += 1.0
            self.step += self.steps
            for rank, host in enumerate(("ant", "bee")):
                if host not in self.silent:
                    self.judge.heard(host, self.report(rank), self.now)
            for event in self.judge.look(self.now):
                if self.loss is None:
                    self.said.append(event.text)
                    self.loss, self.lost_at = event.loss, self.now


def test_a_run_without_faults_is_left_alone() -> None:
    cluster = Cluster()
    cluster.go_on(1000)
    assert (cluster.said, cluster.loss) == ([], None)
    assert cluster.judge.step == 1000


def test_a_silent_host_is_suspected_and_then_lost() -> None:
    cluster = Cluster()
    cluster.go_on(20)
    cluster.silent = {"bee"}
    cluster.go_on(30)
    assert cluster.said == [
        "host bee has been silent for 5 s; after 10 s it counts as lost",
        "host bee was lost: it has been silent for 10 s",
    ]
    assert cluster.loss is not None
    assert (cluster.loss.host, cluster.loss.step, cluster.lost_at) == ("bee", 20, 30.0)


def test_short_faults_heal() -> None:
    cluster = Cluster()
    cluster.go_on(20)
    for _ in range(3):
        cluster.silent = {"bee"}
        cluster.go_on(8)
        cluster.silent = set()
        cluster.states[1] = STOPPED
        cluster.go_on(8)
        cluster.states[1] = RUNS
        cluster.go_on(5)
    assert cluster.loss is None
    assert cluster.said[:4] == [
        "host bee has been silent for 5 s; after 10 s it counts as lost",
        "host bee answers again, after 9 s",
        "rank 1 (process 101 on bee) has been stopped for 5 s; after 10 s it counts as lost",
        "rank 1 (process 101 on bee) runs again, after 8 s",
    ]


def test_ranks_that_are_stopped_frozen_or_gone_are_named() -> None:
    for state, dead, memory, cause in (
        (STOPPED, False, False, "it has been stopped for 10 s"),
        (RUNS, True, False, "it has been frozen for 10 s"),
        (GONE, True, False, "it was killed"),
        (GONE, True, True, "the memory was exhausted, and the system killed it"),
    ):
        cluster = Cluster()
        cluster.go_on(20)
        cluster.states[1], cluster.memory = state, memory
        cluster.dead = {1} if dead else set()
        cluster.go_on(15)
        assert cluster.loss is not None
        assert cluster.loss.cause == f"rank 1 (process 101 on bee) was lost: {cause}"
        assert cluster.loss.host == "bee"
        assert cluster.lost_at <= 31.0


def test_ranks_that_end_by_themselves_are_not_missed() -> None:
    cluster = Cluster()
    cluster.go_on(20)
    cluster.phase = "left"
    cluster.states = {0: GONE, 1: GONE}
    cluster.go_on(5)
    assert (cluster.said, cluster.loss) == ([], None)


def test_a_judge_that_was_itself_stopped_blames_nobody() -> None:
    cluster = Cluster()
    cluster.go_on(20)
    cluster.now += 100.0  # a laptop that was closed
    assert cluster.judge.look(cluster.now) == []
    cluster.go_on(20)
    assert (cluster.said, cluster.loss) == ([], None)


def test_the_agent_of_another_host_may_not_end() -> None:
    cluster = Cluster()
    cluster.judge.agent_ended("ant", "ended with status 1")
    cluster.silent = {"ant"}
    cluster.go_on(3)
    assert cluster.said == ["the watchdog of this machine ended with status 1; its ranks are not watched any more"]
    cluster.judge.agent_ended("bee", "ended with status 255")
    cluster.go_on(1)
    assert cluster.loss is not None
    assert cluster.loss.cause == "host bee was lost: its watchdog ended with status 255"


def test_missing_progress_is_reported_long_before_it_ends_a_run() -> None:
    cluster = Cluster()
    cluster.go_on(20)
    cluster.steps = False
    cluster.go_on(70)
    assert cluster.said == ["no rank has made progress for 60 s, in step 21; the longest time so far was 1 s"]
    cluster.go_on(500)
    assert cluster.loss is None
    cluster.go_on(100)
    assert cluster.loss is not None
    assert "makes no progress" in cluster.loss.cause
    assert cluster.loss.host is None


def test_long_steps_and_other_activities_are_no_lack_of_progress() -> None:
    cluster = Cluster()
    cluster.steps = False
    for _ in range(10):
        cluster.step += 1
        cluster.go_on(50)
    cluster.go_on(900)  # a step of 950 s after some of 50 s
    assert (cluster.said, cluster.loss) == ([], None)
    cluster.phase = "checkpoint"
    cluster.go_on(5000)
    assert (cluster.said, cluster.loss) == ([], None)


def test_little_space_on_the_disk_is_reported_once() -> None:
    cluster = Cluster()
    cluster.free = 10 << 20
    cluster.go_on(20)
    assert cluster.said == ["the disk of the run has only 10 MiB left"]


def test_reports_survive_json() -> None:
    report = Cluster().report(1)
    assert HostReport.from_dict(report.as_dict()) == report


def test_what_a_loss_costs() -> None:
    loss = Loss("host bee was lost", step=120)
    assert loss.cost(100) == "the run goes back to its checkpoint of step 100, from step 120 or a later one"
    assert "its beginning, as no checkpoint was written" in loss.cost(None)


def test_a_host_whose_ranks_have_left_may_be_silent() -> None:
    cluster = Cluster()
    cluster.go_on(20)
    cluster.phase = "left"
    cluster.go_on(1)
    cluster.silent = {"bee"}
    cluster.judge.agent_ended("bee", "ended with status 0")
    cluster.go_on(100)
    assert (cluster.said, cluster.loss) == ([], None)


def test_a_host_that_was_never_heard_has_more_time() -> None:
    cluster = Cluster()
    cluster.silent = {"bee"}
    cluster.go_on(59)
    assert cluster.loss is None
    cluster.go_on(2)
    assert cluster.loss is not None
    assert cluster.loss.cause == "host bee was lost: it has been silent for 60 s"


def test_hosts_that_are_heard_first_are_watched_from_then_on() -> None:
    cluster = Cluster()
    cluster.judge.heard("cat", cluster.report(1), 1.0)
    cluster.go_on(30)
    assert cluster.loss is not None
    assert cluster.loss.host == "cat"
