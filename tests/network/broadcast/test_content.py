"""What is sent: directories, pipes, broken transfers that go on, and compression."""

from __future__ import annotations

import hashlib
import json
import os
import queue
import threading
from pathlib import Path
from typing import Any

import pytest

from minga.errors import CaseError, RunError
from minga.network.broadcast import content
from minga.network.broadcast.compression import Compressor, decode
from minga.network.broadcast.content import Sent, plan, receive, send
from minga.network.broadcast.extents import Extent, gaps, intersection, merged
from minga.network.broadcast.files import Arriving
from minga.network.broadcast.manifest import Manifest, scan
from minga.network.broadcast.source import Source

SMALL = 1 << 10


class Pipe:
    """A channel to the thread that made it from any other one, which breaks after so many messages."""

    def __init__(self, most: int = 1 << 30) -> None:
        self.messages: queue.Queue[bytes] = queue.Queue()
        self.most = most
        self.receiver = threading.current_thread()

    def bcast(self, data: Any = None, root: int = 0) -> Any:
        if threading.current_thread() is not self.receiver:
            self.messages.put(bytes(data))
            return data
        if data is None:
            return self._next()
        data[:] = self._next()
        return data

    def _next(self) -> bytes:
        if not self.most:
            raise RunError("broken")
        self.most -= 1
        return self.messages.get(timeout=10)


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST", "_SHORTEST", "_LONGEST"):
        monkeypatch.setattr(content, name, SMALL)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "from" / "tree"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "sub" / "first").write_bytes(os.urandom(3 * SMALL + 5))
    (root / "empty").touch(mode=0o600)
    (root / "program").write_text("#!/bin/sh\n")
    (root / "program").chmod(0o755)
    (root / "sub" / "link").symlink_to("../program")
    (root / "sub" / "deep" / "up").symlink_to("../..")
    (root / "sub" / "broken").symlink_to("absent")
    (root / "sub").chmod(0o750)
    return root


def passed(source: Source, to: Path, *, most: int = 1 << 30, **wishes: Any) -> tuple[Sent, int]:
    """Send to one receiver, which breaks off after so many messages; return the account, and the bytes refuted."""
    pipe = Pipe(most)
    arriving = Arriving(to, Manifest.read(source.manifest.pack()), **wishes)
    intended, valid = plan(source, [[one.as_list() for one in arriving.claims()]])
    arriving.accept(valid[0])
    done: list[Sent] = []
    sender = threading.Thread(
        target=lambda: done.append(send(pipe, source, intended.ranges, Compressor("off"), lambda sent, of: None))
    )
    sender.start()
    try:
        size, digest = receive(pipe, arriving)
        sender.join()
        assert (size, digest) == (done[0].size, done[0].digest)
        arriving.complete(size)
        arriving.keep()
    finally:
        sender.join()
        arriving.drop()
        source.close()
    return done[0], intended.refuted


def shape(root: Path) -> list[Any]:
    """Return all entries of a tree with their modes and contents."""
    found = []
    for path in sorted(root.rglob("*")):
        what = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        mode = None if path.is_symlink() else path.stat().st_mode & 0o777
        found.append((str(path.relative_to(root)), mode, what))
    return found


def test_a_directory_arrives_as_it_is(tree: Path, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        passed(Source.open(tree), tmp_path / "to")
    finally:
        os.umask(before)
    assert shape(tmp_path / "to") == shape(tree)
    with pytest.raises(RunError, match="was created by another program"):
        passed(Source.open(tree), tmp_path / "to")
    (tree / "new").touch()
    passed(Source.open(tree), tmp_path / "to", replace=True)
    assert (tmp_path / "to" / "new").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["from", "to"]


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../../outside", "../../tree2/x", "sub/link/../../../x", "deep/../.."]
)
def test_links_that_may_lead_outside_are_not_sent(tree: Path, target: str) -> None:
    (tree / "sub" / "bad").symlink_to(target)
    with pytest.raises(CaseError, match=r"bad is a symbolic link"):
        scan(tree)


@pytest.mark.parametrize(
    "entry",
    [
        ["f", "../x", 0o644, 1, ""],
        ["f", "/x", 0o644, 1, ""],
        ["f", "a//x", 0o644, 1, ""],
        ["f", "absent/x", 0o644, 1, ""],
        ["f", "link/x", 0o644, 1, ""],
        ["d", "a", 0o755, 0, ""],
        ["f", "a\x00", 0o644, 1, ""],
        ["f", "x", 0o644, -1, ""],
        ["f", "x", 0o644, None, ""],
        ["f", "x", 0o644, True, ""],
        ["f", "x", "0644", 1, ""],
        ["l", "x", 0, 0, "/etc"],
        ["l", "x", 0, 0, ".."],
        ["l", "x", 0, 0, ""],
        ["l", "x", 0, 0, 3],
        ["l", "x", 0, 0, "a\ud800"],
        ["l", "x", 0, 0, "a\n"],
        ["b", "x", 0, 0, ""],
        ["d", "", 0o755, 0, ""],
        ["d", 7, 0o755, 0, ""],
        ["d"],
    ],
)
def test_a_receiver_checks_what_is_announced(entry: list[Any]) -> None:
    good = [["d", "", 0o755, 0, ""], ["d", "a", 0o4755, 0, ""], ["l", "link", 0, 0, "a"]]
    assert Manifest.read(json.dumps({"kind": "tree", "entries": good}).encode()).entries[1].mode == 0o755
    with pytest.raises(RunError, match="the sender announced"):
        Manifest.read(json.dumps({"kind": "tree", "entries": [*good, entry]}).encode())


@pytest.mark.parametrize("text", [b"", b"[]", b"\xff", b'{"kind": "file", "entries": []}', b"[" * 100_000])
def test_malformed_announcements(text: bytes) -> None:
    with pytest.raises(RunError, match="the sender announced"):
        Manifest.read(text)


def test_a_broken_transfer_goes_on_where_it_was(tree: Path, tmp_path: Path) -> None:
    to = tmp_path / "to"
    with pytest.raises(RunError, match="broken"):
        passed(Source.open(tree), to, most=4)
    assert not to.exists()
    sent, refuted = passed(Source.open(tree), to)
    assert (sent.raw, refuted) == (sent.size - 2 * SMALL, 0)
    assert shape(to)[-1] == shape(tree)[-1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["from", "to"]


def test_a_changed_source_is_noticed(tmp_path: Path) -> None:
    file, to = tmp_path / "file", tmp_path / "to"
    file.write_bytes(b"a" * 4 * SMALL)
    with pytest.raises(RunError, match="broken"):
        passed(Source.open(file), to, most=6)
    file.write_bytes(b"a" * SMALL + b"b" * 3 * SMALL)
    sent, refuted = passed(Source.open(file), to)
    assert refuted == 2 * SMALL
    assert sent.raw == 3 * SMALL
    assert to.read_bytes() == file.read_bytes()
    assert sent.digest == hashlib.sha256(file.read_bytes()).digest()
    with pytest.raises(RunError, match="broken"):
        passed(Source.open(file), tmp_path / "other", most=6)
    file.write_bytes(b"c")
    arriving = Arriving(tmp_path / "other", scan(file))
    assert arriving.changed
    assert arriving.claims() == []
    arriving.drop()


def test_what_was_damaged_on_the_disk_is_sent_again(tmp_path: Path) -> None:
    file, to = tmp_path / "file", tmp_path / "to"
    file.write_bytes(os.urandom(4 * SMALL))
    with pytest.raises(RunError, match="broken"):
        passed(Source.open(file), to, most=6)
    (partial,) = tmp_path.glob(".minga-*.partial")
    with (partial / "content").open("r+b") as kept:
        kept.write(b"damaged")
    with (partial / "journal").open("a") as journal:
        journal.write('[0, 10, "to')  # where the process was killed
    sent, _ = passed(Source.open(file), to)
    assert sent.raw == 2 * SMALL
    assert to.read_bytes() == file.read_bytes()


def test_partial_files_are_private(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a" * 4 * SMALL)
    with pytest.raises(RunError, match="broken"):
        passed(Source.open(file), tmp_path / "to", most=6)
    (partial,) = tmp_path.glob(".minga-*.partial")
    assert partial.stat().st_mode & 0o777 == 0o700
    one = Arriving(tmp_path / "to", scan(file))
    with pytest.raises(RunError, match="another transfer"):
        Arriving(tmp_path / "to", scan(file))
    one.drop()
    partial.chmod(0o777)
    with pytest.raises(RunError, match="is in the way"):
        Arriving(tmp_path / "to", scan(file))
    partial.chmod(0o700)
    Arriving(tmp_path / "to", scan(file), resume=False).drop()
    assert not partial.exists()


def test_a_pipe_of_any_length(tmp_path: Path) -> None:
    for size in (0, 1, 2 * SMALL, 2 * SMALL + 1):
        reading, writing = os.pipe()
        data = os.urandom(size) if size > 1 else bytes(size)
        os.write(writing, data)
        os.close(writing)
        source = Source.open(Path(f"/proc/{os.getpid()}/fd/{reading}"))
        os.close(reading)
        sent, _ = passed(source, tmp_path / "to", replace=True)
        assert sent.digest == hashlib.sha256(data).digest()
        assert (tmp_path / "to").read_bytes() == data


def test_compression_pays_where_the_network_is_slow() -> None:
    text, noise = bytearray(b"sand on the beach " * 20_000), bytearray(os.urandom(1 << 18))
    assert Compressor("off").encode(text, 1.0)[0] == 0
    assert Compressor("auto").encode(noise, 1.0)[0] == 0
    assert Compressor("auto").encode(text, None)[0] == 0
    assert Compressor("auto").encode(text, 1e15)[0] == 0
    for setting in ("auto", "zstd", "zlib"):
        kind, packed = Compressor(setting).encode(text, 1.0)
        assert len(packed) < len(text) / 10
        assert decode(kind, packed, len(text)) == text
        with pytest.raises(RunError, match="cannot be decompressed"):
            decode(kind, b"nonsense", 10)
    with pytest.raises(RunError, match="cannot be decompressed"):
        decode(9, b"x", 1)


def test_ranges() -> None:
    assert merged([(5, 6), (0, 2), (2, 3), (4, 4)]) == [(0, 3), (5, 6)]
    assert gaps(8, [(0, 3), (5, 6)]) == [(3, 5), (6, 8)]
    assert intersection(8, [[(0, 5)], [(2, 8)], [(1, 3), (4, 7)]]) == [(2, 3), (4, 5)]
    assert intersection(8, [[(0, 5)], []]) == []
    for said in (None, [1, 2], [0, 1, "zz"], [-1, 1, "00" * 32], [0, 0, "00" * 32], [0.0, 1, "00" * 32], [0, 1, "00"]):
        with pytest.raises(RunError, match="invalid part"):
            Extent.read(said)
