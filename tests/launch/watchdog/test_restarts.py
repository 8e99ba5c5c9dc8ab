"""A run that has lost something is started again with growing pauses, and not for ever."""

from __future__ import annotations

from minga.launch.watchdog.loss import Loss
from minga.launch.watchdog.restarts import Restarts


def test_pauses_grow_and_have_a_limit_while_nothing_is_gained() -> None:
    restarts = Restarts(leaves_out=True, here="ant")
    pauses = [restarts.after(Loss("x", "bee"), 5, 10.0 * number).pause for number in range(8)]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    assert restarts.after(Loss("x", "bee"), 6, 100.0).pause == 1
    assert restarts.after(Loss("x", "bee"), 6, 200.0).pause == 2


def test_two_losses_without_a_new_checkpoint_end_a_run() -> None:
    restarts = Restarts(checkpoint=5)
    assert restarts.after(Loss("x"), 5, 0.0).refusal is None
    refusal = restarts.after(Loss("x"), 5, 1.0).refusal
    assert refusal == "2 losses in a row, and no checkpoint was written between them"
    restarts = Restarts()
    for step in (None, 10, 10, 20, 20, 30):
        assert restarts.after(Loss("x"), step, 0.0).refusal is None


def test_losses_of_other_hosts_without_a_new_checkpoint_do_not_end_a_run() -> None:
    """It continues without each of them that was lost three times."""
    restarts = Restarts(checkpoint=5, leaves_out=True, here="ant")
    for host in ("bee", "cat") * 3:
        assert restarts.after(Loss("x", host), 5, 0.0).refusal is None
    assert restarts.barred(0.0).keys() == {"bee", "cat"}
    assert restarts.after(Loss("x", "ant"), 5, 0.0).refusal is None
    assert restarts.after(Loss("x", "ant"), 5, 0.0).refusal is not None


def test_restarts_within_an_hour_are_limited() -> None:
    restarts = Restarts()
    for step in range(1, 13):
        assert restarts.after(Loss("x"), step, float(step)).refusal is None
    assert restarts.after(Loss("x"), 13, 20.0).refusal == "12 restarts within an hour"
    assert restarts.after(Loss("x"), 14, 3700.0).refusal is None


def test_a_host_that_failed_three_times_within_an_hour_stays_out_for_the_rest_of_it() -> None:
    restarts = Restarts()
    restarts.after(Loss("x", "bee"), 1, 0.0)
    restarts.after(Loss("x", "cat"), 2, 1.0)
    restarts.after(Loss("x", "bee"), 2, 1.0)
    assert restarts.barred(1.0) == {}
    restarts.after(Loss("x", "bee"), 3, 2.0)
    assert restarts.barred(3.0) == {"bee": 3597.0}
    assert restarts.barred(3599.0) == {"bee": 1.0}
    assert restarts.barred(3601.0) == {}
