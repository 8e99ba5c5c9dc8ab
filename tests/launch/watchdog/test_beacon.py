"""Signs of life in datagrams: only those of this run count, each once, and each is answered."""

from __future__ import annotations

import queue
import socket

from minga.launch.watchdog.beacon import Beacon, Sign, Signs

KEY = "00" * 16


def test_signs_count_once_and_only_with_the_key() -> None:
    sender, receiver = Signs(KEY), Signs(KEY)
    first, second = sender.make(Sign("bee")), sender.make(Sign("bee"))
    assert receiver.read(second) == Sign("bee")
    assert receiver.read(second) is None
    assert receiver.read(first) is None
    assert receiver.read(sender.make(Sign("", b"x"))) == Sign("", b"x")
    for wrong in (Signs("11" * 16).make(Sign("bee")), b"", b"x" * 40, second[:-1], second + b"x"):
        assert receiver.read(wrong) is None


def test_a_beacon_tells_who_lives_and_answers() -> None:
    heard: queue.SimpleQueue[Sign] = queue.SimpleQueue()
    beacon = Beacon(heard.put)
    beacon.answer = b"yes"
    try:
        signs = Signs(beacon.key)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.settimeout(10)
            sender.sendto(b"nonsense", ("127.0.0.1", beacon.port))
            sender.sendto(signs.make(Sign("bee")), ("127.0.0.1", beacon.port))
            assert signs.read(sender.recv(512)) == Sign("", b"yes")
        assert heard.get(timeout=10) == Sign("bee")
        assert heard.empty()
    finally:
        beacon.close()
