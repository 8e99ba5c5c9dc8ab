"""The planner: the layout, placement, halo depth and overlap that the cost model finds fastest, with reasons.

The search covers teams (all nodes, then without the slowest ones, until speeds alone show that fewer nodes cannot pay),
the layouts of :mod:`minga.plan.candidates` and, for the best few of them, placements, halo depths and overlap. The
naive plan (equal Cartesian parts in order, one exchange per step, overlapped) is always among the candidates. Equal
arguments give an equal plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from minga.errors import LayoutError
from minga.plan.candidates import Option, badly_joined, fewer, fits, fitted, options, refined
from minga.plan.placement import arrange, check_mapping, portfolio
from minga.plan.plan import Choice, Plan, Prediction, duration
from minga.plan.ranks import RankGroup
from minga.plan.speed import TRUSTED
from minga.plan.work.work import Work
from minga.space.cuts import best_cartesian, parse_layout, slabs
from minga.space.layout import GRANULE, Layout

__all__ = ["make_plan"]

_FINALISTS = 3
"""Number of layouts whose placements and depths are tried."""

_MANY = 4096
"""Number of ranks above which only those of the best layout are tried."""

_WORTH = 1e-3
"""Share of the time that a change must save: less is within the error of the model, and the plain way is kept."""


def make_plan(
    work: Work,
    group: RankGroup,
    *,
    layout: str = "auto",
    mapping: str = "auto",
    halo_depth: int | Literal["auto"] = "auto",
    overlap: bool | Literal["auto"] = "auto",
    source: str = "",
) -> Plan:
    """Plan a run: layout, mapping, halo depth, and overlap of messages with computation.

    According to the cost model (:mod:`minga.plan.cost`), the plan is never slower than the naive one, as far as the
    arguments leave a choice and the naive plan fits into memory.

    Parameters
    ----------
    work, group
        The work of a step, and the ranks.
    layout
        "auto", or the name of a layout of equal parts (:func:`minga.space.cuts.parse_layout`), which is kept.
    mapping
        "auto", or one of :data:`minga.plan.placement.MAPPINGS`.
    halo_depth, overlap
        "auto", or values to keep.
    source
        Origin of the speeds, which is recorded in the plan.

    Returns
    -------
    Plan
        The plan.

    Raises
    ------
    LayoutError
        If a name is invalid, or memory does not suffice.
    """
    check_mapping(mapping)
    search = _Search(work, group, 1 if halo_depth == "auto" else halo_depth, overlap is not False)
    naive = Option(*_naive(work, group), work)
    base = naive.predict(group, search.depth, search.overlap)
    if layout == "auto":
        found = search.layouts(naive)
    else:
        # As in Model.layouts, so that a plan describes what would be run.
        granule = 1 if work.points > 1 or work.cuts else max(GRANULE, work.granule[-1])
        given = parse_layout(layout, work.domain, group.ranks, granule)
        found = [search.judged(_sequential(Option(layout, given, work), group))]
    fitting = [each for each in found if search.fits(each.told)]
    if not fitting:
        raise _no_room(work, group, layout, base if layout == "auto" else found[0].told)
    best = search.best(fitting, mapping, halo_depth == "auto", overlap == "auto")
    if layout == "auto" and best.depth != search.depth and group.ranks <= _MANY:
        # Cheaper messages make other cuts worthwhile.
        again = _Search(work, group, best.depth, search.overlap)
        found = [each for each in again.layouts(naive) if again.fits(each.told)]
        if found:
            other = again.best(found, mapping, True, overlap == "auto")
            best = other if other.told.seconds < best.told.seconds else best
    plain = base if search.depth == 1 and search.overlap else naive.predict(group, 1, True)
    story = _Story.of(search, best, base.seconds)
    return Plan(
        layout=best.option.layout,
        name=best.option.name,
        mapping=best.mapping,
        halo_depth=best.depth,
        overlap=best.overlap,
        prediction=best.told,
        choices=story.choices(),
        left_out=tuple(story.left_out()),
        source=source,
        naive=plain.seconds,
        notes=tuple(_notes(work, group, best.option.layout, search.overfull(plain))),
        uplinks=best.option.uplinks(group, best.depth) if search.most_nodes > 1 else (),
    )


@dataclass(frozen=True, eq=False)
class _Judged:
    """An option with its prediction, for the depth and overlap that the search begins with."""

    option: Option
    told: Prediction
    nodes: int


@dataclass(frozen=True, eq=False)
class _Final:
    """A way to run: an option as it was cut (``start``) and as it was placed, with a halo depth and an overlap."""

    start: _Judged
    option: Option
    mapping: str
    depth: int
    overlap: bool
    told: Prediction


class _Search:
    """The fixed part of a comparison of options, and all options seen so far."""

    def __init__(self, work: Work, group: RankGroup, depth: int, overlap: bool) -> None:
        self.work, self.group, self.depth, self.overlap = work, group, depth, overlap
        self.seen: list[_Judged] = []
        self.most_nodes = len(np.unique(group.seats.nodes))

    def judged(self, option: Option) -> _Judged:
        """Predict an option, with smaller shares for some ranks if their memory requires it."""
        told = option.predict(self.group, self.depth, self.overlap)
        if not self.fits(told):
            option, told = fitted(option, self.group, self.depth, self.overlap, told)
        used = np.unique(option.layout.owner)
        judged = _Judged(option, told, len(np.unique(self.group.seats.nodes[used])))
        self.seen.append(judged)
        if self.group.ranks > _MANY:
            option.known.clear()  # many ranks have hundreds of megabytes of pairs
        return judged

    def fits(self, told: Prediction) -> bool:
        """Return True if the memory of each rank holds what it would store."""
        return fits(self.group, told)

    def overfull(self, told: Prediction) -> str | None:
        """Return the node whose memory is exceeded most, or None."""
        over = np.where(self.group.memory > 0, told.memory / np.maximum(self.group.memory, 1), 0.0)
        return None if over.max() <= 1 else self.group.node(int(over.argmax()))

    def layouts(self, naive: Option) -> list[_Judged]:
        """Return all layouts, the fastest first, but the naive one before others that save next to nothing."""
        found = [self.judged(naive)]
        base = found[0].told
        best = base.seconds if self.fits(base) else np.inf
        slow = badly_joined(self.group)
        for unwanted in ([], slow) if slow else ([],):
            for team, least in fewer(self.work, self.group, unwanted=unwanted):
                if least >= best * (1 - _WORTH):
                    break
                for option in options(team, self.depth):
                    judged = self.judged(option)
                    found.append(judged)
                    if self.fits(judged.told):
                        best = min(best, judged.told.seconds)
        fitting = [each for each in found if self.fits(each.told)]
        fitting.sort(key=lambda each: each.told.seconds)
        if fitting and fitting[0].nodes == 1 and self.most_nodes > 1:
            fitting = self._on_one_node(fitting)
        corrected = [self._refined(each) for each in fitting[: 2 * _FINALISTS]] + fitting[2 * _FINALISTS :]
        worth = (1 - _WORTH) * base.seconds if self.fits(base) else np.inf
        corrected.sort(key=lambda each: each.told.seconds if each.told.seconds < worth else base.seconds)
        return corrected

    def _on_one_node(self, found: list[_Judged]) -> list[_Judged]:
        """Add layouts on fewer and fewer ranks of a node, if a single node is the fastest."""
        team = found[0].option.team
        if team is None:
            return found
        for smaller, least in fewer(self.work, self.group, team.ranks):
            if least >= found[0].told.seconds * (1 - _WORTH):
                break
            found += [each for each in map(self.judged, options(smaller, self.depth)) if self.fits(each.told)]
        return sorted(found, key=lambda each: each.told.seconds)

    def _refined(self, judged: _Judged) -> _Judged:
        better = refined(judged.option, self.group, self.depth, self.overlap)
        return judged if better is judged.option else self.judged(better)

    def best(self, found: list[_Judged], mapping: str, any_depth: bool, any_overlap: bool) -> _Final:
        """Return the best of the first few options over all placements, depths and overlaps that may be chosen."""
        many = self.group.ranks > _MANY
        finals = [
            self._deepened(start, option, name, told, any_depth, any_overlap)
            for start in found[: 1 if many else _FINALISTS]
            # A placement that is not better than the one before it does not come after it.
            for option, name, told in [*self._placements(start, mapping)][-1 if many else 0 :]
        ]
        if not finals:
            raise LayoutError(
                f"no layout on {self.group.ranks} ranks suits the mapping {mapping!r}",
                remedy='write mapping = "auto"',
            )
        return min(finals, key=lambda final: final.told.seconds)

    def _placements(self, start: _Judged, mapping: str) -> Iterator[tuple[Option, str, Prediction]]:
        """Yield the option as it is, and with its blocks on other ranks of the same speed, as ``mapping`` allows."""
        if mapping in ("auto", "sequential") or self.group.ranks == 1:
            yield start.option, "sequential", start.told
        if mapping == "sequential" or self.group.ranks == 1:
            return
        layout, group, work = start.option.layout, self.group, self.work
        busy = np.zeros(group.ranks, np.int64)
        busy[layout.owner] = 1
        kinds = _kinds(np.stack([group.speed_of, group.memory, busy], axis=1))
        same = kinds if kinds.any() else None
        if mapping == "auto":
            cheapest = portfolio(layout, group.seats, work.periodic, work.exchanges, group.links, same)[0]
            name, ranks = cheapest.mapping, cheapest.ranks
        else:
            try:
                ranks = arrange(layout, group.seats, mapping, work.periodic, work.exchanges, group.links, same)
            except LayoutError:
                return
            name = mapping
        option = start.option.placed(ranks)
        told = option.predict(group, self.depth, self.overlap)
        if self.fits(told) and (mapping != "auto" or told.seconds < (1 - _WORTH) * start.told.seconds):
            yield option, name, told

    def _deepened(
        self, start: _Judged, option: Option, mapping: str, told: Prediction, any_depth: bool, any_overlap: bool
    ) -> _Final:
        """Return the placed option with the best halo depth and the best choice of overlap."""
        best = _Final(start, option, mapping, self.depth, self.overlap, told)
        worse = 0
        for depth in range(1, self.work.deepest + 1) if any_depth else (self.depth,):
            if worse > 1 or (any_depth and not _wide_enough(self.work, option.layout, depth)):
                break
            before = best
            for overlap in (True, False) if any_overlap else (self.overlap,):
                if (depth, overlap) == (self.depth, self.overlap):
                    continue
                other = _Final(start, option, mapping, depth, overlap, option.predict(self.group, depth, overlap))
                if self.fits(other.told) and _better(other, best):
                    best = other
            worse = 0 if best is not before or depth <= self.depth else worse + 1
        return best


def _better(other: _Final, best: _Final) -> bool:
    """Return True if a way to run is better than the best so far.

    It must save enough, or be as fast as a way that splits blocks in vain because no message passes meanwhile.
    """
    told = best.told
    in_vain = best.overlap and bool(told.exchange.any()) and not told.hidden.any()
    if in_vain and not other.overlap and other.depth == best.depth:
        return other.told.seconds <= told.seconds
    return other.told.seconds < (1 - _WORTH) * told.seconds


def _naive(work: Work, group: RankGroup) -> tuple[str, Layout]:
    halo = max((w for e in work.exchanges for w in e.low + e.high), default=1)
    if work.one_axis is None:
        layout = best_cartesian(work.domain, group.ranks, work.granule[-1], halo)
    else:
        layout = slabs(work.domain, group.ranks, work.one_axis, granule=work.granule[-1])
    option = _sequential(Option("cartesian", layout, work), group)
    parts = "x".join(str(len(cuts)) for cuts in layout.cuts)
    return f"cartesian:{parts}", option.layout


def _sequential(option: Option, group: RankGroup) -> Option:
    """Place the parts of ranks 0, 1, ... on the ranks in the order of the machine's tree."""
    order = group.seats.order
    return option if (order == np.arange(group.ranks)).all() else option.placed(order)


def _kinds(rows: np.ndarray) -> np.ndarray:
    """Assign a number to each different row."""
    number = np.zeros(len(rows), np.int64)
    for column in rows.T:
        place = np.unique(column, return_inverse=True)[1].reshape(-1)
        number = np.unique(number * (int(place.max()) + 1) + place, return_inverse=True)[1].reshape(-1)
    return number


def _wide_enough(work: Work, layout: Layout, depth: int) -> bool:
    """Return True if no halo of so many steps reaches beyond a neighbour."""
    sizes = (layout.hi - layout.lo).min(axis=0)
    for exchange in work.depth(depth).exchanges:
        for axis, cuts in enumerate(layout.cuts):
            if len(cuts) > 1 and max(exchange.low[axis], exchange.high[axis]) > sizes[axis]:
                return False
    return True


# Explanations of a plan ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Story:
    """Seconds per step after each successive decision; their differences are the savings of the decisions.

    naive      equal parts
    all_nodes  the best layout that uses all nodes
    cut        the chosen layout, as it was cut
    placed     the chosen layout with its blocks placed
    deep       the placed layout with the chosen halo depth
    """

    search: _Search
    best: _Final
    naive: float
    all_nodes: float
    cut: float
    placed: float
    deep: float

    @classmethod
    def of(cls, search: _Search, best: _Final, naive: float) -> _Story:
        def seconds(option: Option, depth: int) -> float:
            return option.predict(search.group, depth, search.overlap).seconds

        whole = [f.told.seconds for f in search.seen if f.nodes == search.most_nodes and search.fits(f.told)]
        deep = best.told.seconds if best.overlap == search.overlap else seconds(best.option, best.depth)
        placed = seconds(best.option, search.depth) if best.depth != search.depth else deep
        cut = best.start.told.seconds if best.option is not best.start.option else placed
        all_nodes = cut if best.start.nodes == search.most_nodes else min(whole, default=cut)
        return cls(search, best, naive, all_nodes, cut, placed, deep)

    def choices(self) -> tuple[Choice, ...]:
        """Return all decisions with their gains and reasons."""
        best, search = self.best, self.search
        used, nodes = best.start.nodes, search.most_nodes
        return (
            Choice("layout", best.option.name, "equal Cartesian parts", self.naive - self.all_nodes, self._why()),
            Choice(
                "nodes",
                f"{used} of {nodes}",
                f"{nodes} of {nodes}",
                self.all_nodes - self.cut,
                "the others would cost more in messages than they save in computing" if used < nodes else "",
            ),
            Choice("mapping", best.mapping, "sequential", self.cut - self.placed, "fewer bytes on slow links"),
            Choice(
                "halo depth",
                str(best.depth),
                str(search.depth),
                self.placed - self.deep,
                f"{best.depth} steps share the latency of one exchange",
            ),
            self._overlap(),
        )

    def _overlap(self) -> Choice:
        best, search = self.best, self.search
        if best.overlap != search.overlap:
            reason = "splitting blocks would cost more than it hides"
            return Choice("overlap", "off", "on", self.deep - best.told.seconds, reason)
        if not best.overlap:
            return Choice("overlap", "off", "off", 0.0, "")
        gain = best.option.predict(search.group, best.depth, False).seconds - best.told.seconds
        hidden = duration(float(best.told.hidden.max()))
        reason = f"up to {hidden} of messages per step pass while the interior is computed"
        return Choice("overlap", "on", "off", gain, reason)

    def _why(self) -> str:
        cells = self.best.option.layout.cells()
        used = cells[cells > 0]
        if used.max() > 1.02 * used.min() and len(np.unique(self.search.group.speed_of)) > 1:
            return f"ranks get {used.min()} to {used.max()} cells, by their speed"
        return "less surface, or cheaper messages"

    def left_out(self) -> Iterator[tuple[str, str]]:
        """Yield the nodes without cells, with the reason."""
        group = self.search.group
        node = group.seats.nodes
        used = np.unique(node[self.best.option.layout.owner])
        numbers, first = np.unique(node, return_index=True)
        if self.all_nodes > self.cut:
            reason = (
                f"a step would take {duration(self.all_nodes)} with all nodes, and takes {duration(self.cut)} without"
                " those left out"
            )
        else:
            reason = "there are not enough cells for it"
        for rank in first[~np.isin(numbers, used)].tolist():
            yield group.node(rank), reason


def _notes(work: Work, group: RankGroup, layout: Layout, overfull: str | None) -> Iterator[str]:
    if overfull is not None:
        yield f"equal parts would not fit into the memory of {overfull}"
    cells = layout.cells() * work.points
    node = group.seats.nodes
    idle = int((cells == 0).sum())
    if idle and len(np.unique(node[cells > 0])) == len(np.unique(node)):
        yield f"{idle} of {group.ranks} ranks get no cells: messages would cost more than they save"
    for number, speed in enumerate(group.speeds):
        if len(speed.cells) == 1 and speed.cells[0] <= 1:
            continue  # one speed for all sizes, as given by a person
        mine = np.where(group.speed_of == number, cells, 0)
        largest = int(mine.max())
        if largest > TRUSTED * speed.cells[-1]:
            rank = int(mine.argmax())
            yield (
                f"{group.node(rank)} gets {largest} cells per rank, but was measured up to {speed.cells[-1]:.0f}: "
                "beyond that, its speed is assumed to stay the same"
            )


def _no_room(work: Work, group: RankGroup, name: str, told: Prediction) -> LayoutError:
    """Return the error for insufficient memory, with the node and what would fit."""
    room = np.where(group.memory > 0, group.memory - float(work.rank_bytes), np.inf)
    together = float(np.maximum(room, 0.0).sum())
    over = told.memory - np.where(group.memory > 0, group.memory, np.iinfo(np.int64).max)
    rank = int(over.argmax())
    node = group.node(rank)
    message = (
        f"{node} is too small: rank {rank} would store {_bytes(int(told.memory[rank]))} there and may fill "
        f"{_bytes(int(group.memory[rank]))}"
    )
    if together < work.domain.size * work.cell_bytes:
        shape = " x ".join(map(str, work.domain.shape))
        return LayoutError(
            f"{shape} cells of {work.name!r} need {_bytes(work.domain.size * work.cell_bytes)}, and the "
            f"{group.ranks} ranks together may fill {_bytes(int(together))}",
            remedy=f"choose at most about {int(together // work.cell_bytes) * work.points} cells, or more machines",
            where=message,
        )
    remedy = (
        'write layout = "auto": shares then follow memory' if name != "auto" else "choose a smaller grid, or more ranks"
    )
    return LayoutError(message, remedy=remedy)


def _bytes(number: int) -> str:
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number} bytes"
