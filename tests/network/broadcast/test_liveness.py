"""Whether a root that has not begun is still there, in virtual time."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from minga.network.broadcast.datagram import Kind
from minga.network.broadcast.keys import Keys, Session
from minga.network.broadcast.liveness import Liveness
from minga.network.broadcast.lost import MembersLost


def lost_at(reader: Liveness, begin: float) -> float:
    """When the reader says that the root is gone, of one that looks twenty times a second."""
    for now in np.arange(begin, begin + 10, 0.05):
        try:
            reader.wait(now, 1)
        except MembersLost as error:
            return float(now) if error.members == (1,) else -1.0
    pytest.fail("it was waited for all the time")


def both() -> tuple[Keys, Liveness, Liveness]:
    """The keys of a session, a reader (member 0) and a root (member 1); silence may last a second."""
    keys = Keys(Session(b"12345678", b"k" * 32, 2))
    return keys, Liveness(keys, 0, count(1), 1.0), Liveness(keys, 1, count(1), 1.0)


def test_a_root_that_answers_is_waited_for() -> None:
    keys, reader, root = both()
    questions = 0
    for now in np.arange(0.0, 10.0, 0.05):
        question = reader.wait(now, 1)
        if question is not None:
            questions += 1
            asked = keys.open(question)
            assert asked is not None
            answer = root.answer(asked)
            assert answer is not None
            heard = keys.open(answer)
            assert heard is not None
            assert (heard.kind, heard.sender) == (Kind.READY, 1)
            assert reader.answer(heard) is None  # answers are not answered
            reader.heard(heard.sender)
    assert 20 <= questions <= 100


def test_a_root_that_does_not_answer_is_lost_in_time() -> None:
    _, reader, _ = both()
    assert 1.0 <= lost_at(reader, 0.0) < 1.2


def test_a_reader_that_was_stopped_itself_blames_nobody() -> None:
    _, reader, _ = both()
    for now in np.arange(0.0, 0.9, 0.05):
        reader.wait(now, 1)
    reader.wait(1000.0, 1)  # and begins anew
    assert lost_at(reader, 1000.05) >= 1001.0


def test_questions_to_others_are_not_answered() -> None:
    keys, _, root = both()
    other = keys.open(keys.seal(Kind.HELLO, 0, root=0))
    assert other is not None
    assert root.answer(other) is None
