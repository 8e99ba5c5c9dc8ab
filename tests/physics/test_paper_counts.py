"""The messages and bytes of Printista and Saez, *Effective Use of Multicore Clusters in Parallel Cellular Automata*.

Counted by the transport while relaxations and automata run on up to 64 virtual ranks; nothing here is computed from the
layout; what placements are chosen by is, and must agree. Where the paper counts a message for each face, and a torus
two blocks wide makes a rank its neighbour's neighbour on both sides, minga sends both faces in one message: there faces
and messages are asserted apart.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.traffic import Traffic
from minga.plan.placement import cost_of, level_costs, place
from minga.plan.topology import Tree, traffic_by_level
from minga.plan.work.work import HaloRound
from minga.space.cuts import cartesian

EXCHANGES = 3
"""Before the first step, and after each of two for the next one."""
Sent = list[dict[int, Traffic]]
"""What each rank sent to each other one in a step."""


@dataclass(frozen=True)
class Way:
    """A way to give the blocks to the ranks of a machine."""

    parts: tuple[int, ...]
    machine: str
    mapping: str = "sequential"

    @property
    def seats(self) -> Tree:
        return Tree.parse(self.machine).seats(int(np.prod(self.parts)))


@mg.kernel
def relaxation(u, new):
    """Laplace's equation, the paper's benchmark."""
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


@mg.kernel
def parity1(u, new):
    """The parity rule of a cell and its von Neumann neighbours, on a line."""
    new[0] = u[-1] ^ u[0] ^ u[1]


@mg.kernel
def parity2(u, new):
    new[0, 0] = u[0, 0] ^ u[-1, 0] ^ u[1, 0] ^ u[0, -1] ^ u[0, 1]


@mg.kernel
def parity3(u, new):
    new[0, 0, 0] = u[-1, 0, 0] ^ u[1, 0, 0] ^ u[0, -1, 0] ^ u[0, 1, 0] ^ u[0, 0, -1] ^ u[0, 0, 1]


@mg.kernel
def parity_moore(u, new):
    """With diagonal neighbours too."""
    edges = u[0, 0] ^ u[-1, 0] ^ u[1, 0] ^ u[0, -1] ^ u[0, 1]
    new[0, 0] = edges ^ u[-1, -1] ^ u[-1, 1] ^ u[1, -1] ^ u[1, 1]


@dataclass
class Measured:
    """What ways of running the same steps sent, and what they came to."""

    sent: dict[Way, Sent]

    def levels(self, way: Way) -> list[Traffic]:
        """By distance: between nodes, between chips, within a chip."""
        found = list(traffic_by_level(self.sent[way], way.seats).values())
        assert found[-1] == Traffic()  # no two ranks share a core
        return found[:-1]

    def messages(self, way: Way) -> tuple[int, ...]:
        return tuple(level.messages for level in self.levels(way))

    def faces(self, way: Way) -> tuple[int, ...]:
        return tuple(level.copies for level in self.levels(way))

    def bytes(self, way: Way) -> tuple[int, ...]:
        return tuple(level.bytes for level in self.levels(way))

    def between_nodes(self, way: Way) -> list[int]:
        """Messages that leave each node."""
        node = way.seats.paths[:, 0]
        out = np.zeros(node.max() + 1, np.int64)
        for rank, receivers in enumerate(self.sent[way]):
            for receiver, traffic in receivers.items():
                out[node[rank]] += traffic.messages * (node[rank] != node[receiver])
        return out.tolist()


def measure(kernel: Any, shape: tuple[int, ...], periodic: bool, *ways: Way, dtype: str = "u1") -> Measured:
    """Steps of a kernel, done one way after the other on the same virtual ranks: what was sent in one step of each.

    The ways must leave the same bits, and send what placements count on.
    """
    layouts = {}
    for number, way in enumerate(ways):
        grid = mg.Grid(shape, periodic=periodic, label=str(number))
        layouts[grid] = place(cartesian(grid.box, way.parts, granule=1), way.seats, way.mapping, grid.periodic)
    start = np.random.default_rng(7).integers(0, 2, shape).astype(dtype)
    steps = [one_step(kernel, grid, f"u{number}", dtype) for number, grid in enumerate(layouts)]

    def rank(comm: Any) -> tuple[list[dict[int, Traffic]], list[Any]]:
        sent, states = [], []
        with mg.Engine(layouts, comm=comm) as engine:
            for u, step in steps:
                engine.set(u, start)
                before = engine.traffic
                engine.run(step, EXCHANGES - 1)
                now = engine.traffic
                sent.append({to: in_one(now[to], before.get(to, Traffic())) for to in now if now[to] != before.get(to)})
                states.append(engine.gather(u))
        return sent, states

    results = mg.run_virtual(int(np.prod(ways[0].parts)), rank)
    states = results[0][1]
    assert all(np.array_equal(state, states[0]) for state in states)
    measured = Measured({way: [sent[number] for sent, _ in results] for number, way in enumerate(ways)})
    once = (1,) * len(shape)
    exchange = HaloRound(once, once, np.dtype(dtype).itemsize, corners=kernel is parity_moore)
    for way, (grid, layout) in zip(ways, layouts.items(), strict=True):
        expected = cost_of(layout, way.seats, grid.periodic, (exchange,))
        counted = (measured.messages(way), measured.bytes(way), measured.faces(way))
        assert counted == (expected.messages[:-1], expected.bytes[:-1], expected.copies[:-1])
    return measured


def one_step(kernel: Any, grid: mg.Grid, name: str, dtype: str) -> tuple[mg.Field, mg.Program]:
    u = mg.Field(name, grid, dtype, slots=2, boundary=None if all(grid.periodic) else mg.fixed(1))
    step = mg.Program(f"step of {name}")
    step.apply(kernel, u, u.next)
    step.rotate(u)
    return u, step


def in_one(after: Traffic, before: Traffic) -> Traffic:
    counts = [a - b for a, b in zip(astuple(after), astuple(before), strict=True)]
    assert not any(count % EXCHANGES for count in counts)
    return Traffic(*(count // EXCHANGES for count in counts))


# The figure: 8 x 8 processes on 16 nodes of 2 chips of 2 cores ---------------------------
SEQUENTIAL = Way((8, 8), "16x2x2")
ROUND_ROBIN = Way((8, 8), "16x2x2", "round-robin")
PAIRS = Way((8, 8), "32x1x2", "round-robin")
TILES = Way((8, 8), "16x2x2", "tiles")
AUTO = Way((8, 8), "16x2x2", "auto")
WIDE = Way((4, 16), "16x2x2")
STRIPS = Way((64, 1), "16x2x2")


@pytest.fixture(scope="module")
def torus() -> Measured:
    return measure(parity2, (1024, 1024), True, SEQUENTIAL, ROUND_ROBIN, PAIRS, TILES, WIDE, STRIPS)


@pytest.fixture(scope="module")
def open_mesh() -> Measured:
    return measure(parity2, (64, 64), False, SEQUENTIAL, ROUND_ROBIN, PAIRS, TILES, AUTO)


@pytest.mark.slow
def test_messages_on_a_torus(torus: Measured) -> None:
    """Ten, sixteen and eight messages leave a node; the paper's figure 5."""
    assert torus.messages(SEQUENTIAL) == torus.faces(SEQUENTIAL) == (160, 32, 64)
    assert torus.messages(ROUND_ROBIN) == torus.faces(ROUND_ROBIN) == (256, 0, 0)
    assert torus.messages(PAIRS) == (256, 0, 0)
    assert torus.messages(TILES) == torus.faces(TILES) == (128, 64, 64)
    assert torus.between_nodes(SEQUENTIAL) == [10] * 16
    assert torus.between_nodes(ROUND_ROBIN) == [16] * 16
    assert torus.between_nodes(PAIRS) == [8] * 32
    assert torus.between_nodes(TILES) == [8] * 16


@pytest.mark.slow
def test_messages_on_an_open_mesh(open_mesh: Measured) -> None:
    expected = {
        SEQUENTIAL: ((128, 32, 64), (5, 9)),
        ROUND_ROBIN: ((224, 0, 0), (11, 15)),
        PAIRS: ((224, 0, 0), (5, 8)),
        TILES: ((96, 64, 64), (4, 8)),
        AUTO: ((96, 64, 64), (4, 8)),
    }
    for way, (messages, (fewest, most)) in expected.items():
        assert open_mesh.messages(way) == open_mesh.faces(way) == messages
        node = open_mesh.between_nodes(way)
        assert (min(node), max(node)) == (fewest, most)


@pytest.mark.slow
def test_every_process_of_a_tile_has_two_neighbours_at_home(torus: Measured) -> None:
    """One on its chip, one on the other chip of the node, and two far away."""
    seats = TILES.seats
    for rank, receivers in enumerate(torus.sent[TILES]):
        common = sorted(int(seats.common(rank, to)) for to in receivers)
        assert common == [0, 0, 1, 2]


@pytest.mark.slow
def test_costs_of_a_node(torus: Measured) -> None:
    """With 10, 3 and 1 for a message between nodes, between chips and within one."""
    costs = level_costs(3)[:3]
    total = {
        way: sum(c * m for c, m in zip(costs, torus.messages(way), strict=True)) for way in torus.sent if way != STRIPS
    }
    assert total[SEQUENTIAL] == 16 * 110 == 1760
    assert total[ROUND_ROBIN] == 16 * 160 == 2560
    assert total[TILES] == 16 * 96 == 1536


@pytest.mark.slow
def test_volumes(torus: Measured) -> None:
    """1024 x 1024 cells of a byte: the shape of the process grid counts as much as the mapping."""
    between = {way: torus.bytes(way)[0] for way in torus.sent}
    assert between[SEQUENTIAL] == 20480
    assert between[TILES] == 16384
    assert between[WIDE] == 16384
    assert between[STRIPS] == 32768
    assert torus.messages(WIDE)[0] == 160


# Smaller machines ---------------------------
def three(parts: tuple[int, ...], machine: str) -> list[Way]:
    return [Way(parts, machine, mapping) for mapping in ("sequential", "round-robin", "tiles")]


@pytest.mark.slow
def test_sixteen_processes_on_four_nodes() -> None:
    """On the torus no mapping gains anything, as a row of four closes on itself; on the open mesh tiles do."""
    ways = three((4, 4), "4x2x2")
    torus = measure(parity2, (32, 32), True, *ways)
    assert [torus.messages(way) for way in ways] == [(32, 16, 16)] * 3
    mesh = measure(parity2, (32, 32), False, *ways)
    assert [mesh.messages(way) for way in ways] == [(24, 8, 16), (24, 8, 16), (16, 16, 16)]


def test_four_processes() -> None:
    """On a torus of 2 x 2 both neighbours along an axis are the same rank: two faces in a message."""
    one, four = Way((2, 2), "1x2x2"), Way((2, 2), "4x1x1")
    torus = measure(parity2, (32, 32), True, one, four)
    assert torus.faces(one) == (0, 8, 8)
    assert torus.messages(one) == (0, 4, 4)
    assert torus.faces(four) == (16, 0, 0)
    assert torus.messages(four) == (8, 0, 0)
    mesh = measure(parity2, (32, 32), False, one, four)
    assert mesh.messages(one) == mesh.faces(one) == (0, 4, 4)
    assert mesh.messages(four) == mesh.faces(four) == (8, 0, 0)


@pytest.mark.parametrize(
    ("ranks", "periodic", "sequential", "round_robin"),
    [
        (16, True, (8, 8, 16), (32, 0, 0)),
        (16, False, (6, 8, 16), (30, 0, 0)),
        pytest.param(64, True, (32, 32, 64), (128, 0, 0), marks=pytest.mark.slow),
        pytest.param(64, False, (30, 32, 64), (126, 0, 0), marks=pytest.mark.slow),
    ],
)
def test_one_dimension(ranks: int, periodic: bool, sequential: tuple[int, ...], round_robin: tuple[int, ...]) -> None:
    ways = three((ranks,), f"{ranks // 4}x2x2")
    line = measure(parity1, (256,), periodic, *ways)
    assert [line.messages(way) for way in ways] == [sequential, round_robin, sequential]


@pytest.mark.slow
def test_three_dimensions() -> None:
    """4 x 4 x 4 processes on 8 nodes of 2 chips of 4 cores."""
    ways = three((4, 4, 4), "8x2x4")
    torus = measure(parity3, (16, 16, 16), True, *ways)
    assert [torus.messages(way) for way in ways] == [(192, 64, 128), (256, 64, 64), (192, 64, 128)]
    mesh = measure(parity3, (16, 16, 16), False, *ways)
    assert [mesh.messages(way) for way in ways] == [(128, 64, 96), (192, 32, 64), (96, 64, 128)]
    assert mesh.between_nodes(ways[2]) == [12] * 8


@pytest.mark.slow
def test_unequal_nodes() -> None:
    """13 processes in a row on nodes of 4, 4 and 5 cores, and 6 x 6 on a pile of unequal nodes."""
    row = [Way((13,), "[[2, 2], [2, 2], [2, 3]]", mapping) for mapping in ("sequential", "round-robin", "auto")]
    line = measure(parity1, (52,), False, *row)
    costs = [sum(c * m for c, m in zip(level_costs(3), line.messages(way), strict=False)) for way in row]
    assert costs == [72, 222, 72]
    pile = [Way((6, 6), "[[4, 4], [2, 2], [2, 2], [4, 8], [4, 4]]", mapping) for mapping in ("sequential", "auto")]
    mesh = measure(parity2, (24, 24), False, *pile)
    assert mesh.messages(pile[1])[0] < mesh.messages(pile[0])[0]


@pytest.mark.slow
def test_diagonal_neighbours() -> None:
    """Edges of 100 cells and corners of one, on an open 8 x 8 mesh: bytes are what the cut edges weigh."""
    mesh = measure(parity_moore, (800, 800), False, SEQUENTIAL, TILES)
    assert mesh.bytes(SEQUENTIAL) == (12996, 3200, 6400)
    assert mesh.bytes(TILES) == (9732, 6464, 6400)


@pytest.mark.slow
def test_long_and_short_faces() -> None:
    """4096 x 4096 cells on 4 x 16 processes, whose faces are 256 and 1024 cells: nothing beats the plain order."""
    ways = [Way((4, 16), "16x2x2", mapping) for mapping in ("sequential", "tiles")]
    mesh = measure(parity2, (4096, 4096), False, *ways)
    assert mesh.bytes(ways[0]) == (49152, 32768, 65536)
    costs = [sum(c * b for c, b in zip(level_costs(3), mesh.bytes(way), strict=False)) for way in ways]
    assert costs == [655360, 655360]


# Table 1: cells and volume of a process ---------------------------
@pytest.mark.parametrize(
    ("parts", "neighbours", "face"),
    [((4, 1), 2, 1), ((2, 2), 4, 2), ((16, 1), 2, 1), ((4, 4), 4, 4)],
    ids=["4 strips", "2 x 2", "16 strips", "4 x 4"],
)
def test_table_of_volumes(parts: tuple[int, int], neighbours: int, face: int) -> None:
    """`neighbours` faces of N / `face` cells of s bytes are sent and as many received, for Laplace's relaxation."""
    n, s = 256, 8
    ranks = parts[0] * parts[1]
    way = Way(parts, f"{ranks}x1")
    sent = measure(relaxation, (n, n), True, way, dtype="f8").sent[way]
    layout = cartesian(mg.Grid((n, n)).box, parts, granule=1)
    assert layout.cells().tolist() == [n * n // ranks] * ranks
    for rank in range(ranks):
        out = list(sent[rank].values())
        into = [receivers[rank] for receivers in sent if rank in receivers]
        assert sum(t.copies for t in out) == sum(t.copies for t in into) == neighbours
        assert sum(t.bytes for t in out + into) == neighbours * (2 * n // face * s)
        # Two blocks along a periodic axis make one rank both neighbours.
        assert sum(t.messages for t in out) == neighbours - parts.count(2)
