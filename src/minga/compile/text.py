"""LLVM IR as text under construction: fresh names, blocks, counted loops, metadata."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class Text:
    """The body of one function. Registers and labels are numbered in the order of their creation."""

    def __init__(self, entry: str = "entry") -> None:
        self.lines: list[str] = [f"{entry}:"]
        self.metadata: list[str] = []
        self.constants: dict[Hashable, str] = {}
        self.block = entry
        self._count = 0

    def fresh(self, stem: str = "v") -> str:
        """Return an unused name: `stem` and a number, without % or @."""
        self._count += 1
        return f"{stem}{self._count}"

    def emit(self, line: str) -> None:
        """Append an instruction."""
        self.lines.append(f"  {line}")

    def let(self, expression: str, stem: str = "v") -> str:
        """Return a new register that holds `expression`."""
        name = f"%{self.fresh(stem)}"
        self.lines.append(f"  {name} = {expression}")
        return name

    def slot(self, kind: str) -> str:
        """Reserve stack memory for one value at the function's entry: a variable that loops may change."""
        name = f"%{self.fresh('s')}"
        self.lines.insert(1, f"  {name} = alloca {kind}, align 64")
        return name

    def note(self, content: str) -> str:
        """Return a new metadata node."""
        self.metadata.append(content)
        return f"!{len(self.metadata) - 1}"

    def constant(self, key: Hashable, kind: str, content: str) -> str:
        """Return the name of a constant of the module, one for each key; see `definitions`."""
        if key not in self.constants:
            self.constants[key] = f"@constant{len(self.constants)} = internal constant {kind} {content}, align 64"
        return self.constants[key].partition(" ")[0]

    def definitions(self) -> list[str]:
        """Return the lines of the module that define its constants."""
        return list(self.constants.values())

    def start(self, label: str) -> None:
        """Begin the block `label`; the previous block must have ended with a branch."""
        self.lines.append(f"{label}:")
        self.block = label

    # Integer arithmetic of addresses and bounds ---------------------------------------------------------------------
    def add(self, a: str, b: str | int) -> str:
        """Return a + b."""
        return a if b in (0, "0") else str(b) if a == "0" else self.let(f"add nsw i64 {a}, {b}", "i")

    def sub(self, a: str, b: str | int) -> str:
        """Return a - b."""
        return a if b in (0, "0") else self.let(f"sub nsw i64 {a}, {b}", "i")

    def mul(self, a: str, b: str | int) -> str:
        """Return a * b."""
        if a == "0" or b in (0, "0"):
            return "0"
        return a if b in (1, "1") else str(b) if a == "1" else self.let(f"mul nsw i64 {a}, {b}", "i")

    def sum(self, a: str, b: str) -> str:
        """Return a + b, either of which may be a literal."""
        if a.lstrip("-").isdigit() and b.lstrip("-").isdigit():
            return str(int(a) + int(b))
        return self.add(b, a) if a.lstrip("-").isdigit() else self.add(a, b)

    def smaller(self, a: str, b: str) -> str:
        """Return the smaller of two numbers."""
        return self.let(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})", "i")

    def larger(self, a: str, b: str) -> str:
        """Return the larger of two numbers."""
        return self.let(f"call i64 @llvm.smax.i64(i64 {a}, i64 {b})", "i")

    def load_word(self, pointer: str, word: int) -> str:
        """Load the 64-bit word number `word` at `pointer`."""
        return self.let(f"load i64, ptr {self.word(pointer, word)}, align 8", "w")

    def load_pointer(self, pointer: str, word: int) -> str:
        """Load the word number `word` at `pointer` as an address."""
        return self.let(f"load ptr, ptr {self.word(pointer, word)}, align 8", "p")

    def word(self, pointer: str, word: int | str) -> str:
        """Return the address of the word number `word` at `pointer`."""
        return pointer if word == 0 else self.let(f"getelementptr i64, ptr {pointer}, i64 {word}", "p")

    def splat(self, kind: str, value: str, width: int) -> str:
        """Return a vector with the same value in all lanes."""
        vector = f"<{width} x {kind}>"
        one = self.let(f"insertelement {vector} poison, {kind} {value}, i64 0")
        return self.let(f"shufflevector {vector} {one}, {vector} poison, <{width} x i32> zeroinitializer", "s")

    # Control flow --------------------------------------------------------------------------------------------------
    @contextmanager
    def loop(self, start: str, stop: str, step: int | str = 1, note: str = "", *, down: bool = False) -> Iterator[str]:
        """Print a loop `for index in range(start, stop, step)`; with `down`, from stop - 1 down to start.

        `note` is metadata of the loop, such as `, !llvm.loop !3`.
        """
        head, body, latch, done = (self.fresh(stem) for stem in ("head", "body", "latch", "done"))
        first = self.sub(stop, 1) if down else start
        index, following, inside = f"%{self.fresh('i')}", f"%{self.fresh('i')}", f"%{self.fresh('c')}"
        self.emit(f"br label %{head}")
        self.lines.append(f"{head}:")
        self.emit(f"{index} = phi i64 [ {first}, %{self.block} ], [ {following}, %{latch} ]")
        self.emit(f"{inside} = icmp {'sge' if down else 'slt'} i64 {index}, {start if down else stop}")
        self.emit(f"br i1 {inside}, label %{body}, label %{done}")
        self.start(body)
        yield index
        self.emit(f"br label %{latch}")
        self.lines.append(f"{latch}:")
        self.emit(f"{following} = add nsw i64 {index}, {-1 if down else step}")
        self.emit(f"br label %{head}{note}")
        self.start(done)

    @contextmanager
    def windows(self, first: str, last: str, width: int, origin: str) -> Iterator[str]:
        """Print a loop over the beginnings of windows of `width` cells.

        Windows begin at `first`, then at multiples of `width` from `origin`, and at `last`; there is none if last <
        first. Counting takes few registers, which the enclosed code may need for addresses.
        """
        head, body, latch, done = (self.fresh(stem) for stem in ("head", "body", "latch", "done"))
        index, following = f"%{self.fresh('i')}", f"%{self.fresh('i')}"
        some = self.let(f"icmp sle i64 {first}, {last}", "c")
        self.emit(f"br label %{head}")
        self.start(head)
        self.emit(f"br i1 {some}, label %{body}, label %{done}")
        self.start(body)
        self.emit(f"{index} = phi i64 [ {first}, %{head} ], [ {following}, %{latch} ]")
        yield index
        more = self.let(f"icmp slt i64 {index}, {last}", "c")
        past = self.let(f"and i64 {self.sub(index, origin)}, {-width}", "i")
        proposed = self.add(self.add(past, origin), width)
        self.emit(f"br label %{latch}")
        self.lines.append(f"{latch}:")
        self.emit(f"{following} = call i64 @llvm.smin.i64(i64 {proposed}, i64 {last})")
        self.emit(f"br i1 {more}, label %{body}, label %{done}")
        self.start(done)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Run the enclosed code only if `condition` (an i1) holds."""
        then, done = self.fresh("then"), self.fresh("done")
        self.emit(f"br i1 {condition}, label %{then}, label %{done}")
        self.start(then)
        yield
        self.emit(f"br label %{done}")
        self.start(done)

    def identity(self, *items: str) -> str:
        """Return a new metadata node that names itself first, as scopes and loops do, so that it is unique."""
        name = self.note("")
        self.metadata[int(name[1:])] = f"distinct !{{{', '.join((name, *items))}}}"
        return name

    def scopes(self, count: int) -> list[str]:
        """Return metadata for `count` kinds of accesses; no kind accesses memory that another kind stores to."""
        domain = self.identity()
        kinds = [self.identity(domain) for _ in range(count)]
        notes = []
        for kind in kinds:
            others = ", ".join(other for other in kinds if other != kind)
            notes.append(f", !alias.scope {self.note(f'!{{{kind}}}')}, !noalias {self.note(f'!{{{others}}}')}")
        return notes

    def parallel(self, *, vectors: bool = True) -> tuple[str, str]:
        """Return metadata (for accesses, for the loop's end) of an innermost loop with independent iterations.

        With `vectors=False`, LLVM does not vectorise or unroll the loop: it only handles the few cells that vectors
        have left.
        """
        group = self.note("distinct !{}")
        accesses = self.note(f'!{{!"llvm.loop.parallel_accesses", {group}}}')
        items = [accesses]
        if not vectors:
            items.append(self.note('!{!"llvm.loop.vectorize.enable", i1 false}'))
            items.append(self.note('!{!"llvm.loop.unroll.disable"}'))
        loop = self.identity(*items)
        return f", !llvm.access.group {group}", f", !llvm.loop {loop}"
