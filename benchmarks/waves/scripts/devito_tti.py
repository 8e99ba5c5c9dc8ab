"""Devito's TTI example as a server: orders are lines of JSON, answers too. `python devito_tti.py SPACE_ORDER SIZE...`

Each SIZE is cells along an axis with the absorbing layers, all of which are updated. An order {"size", "threads",
"steps"} runs the forward operator; the answer holds the seconds a step of the section that updates the fields, and of
that and the source's. Blocks are tuned by Devito ("aggressive") before the first answer for a size and a number of
threads.
"""

import contextlib
import json
import os
import sys

os.environ.update(DEVITO_ARCH="gcc", DEVITO_LANGUAGE="openmp", DEVITO_LOGGING="ERROR")

import devito
from examples.seismic.tti.tti_example import tti_setup

LAYER = 16
UPDATE, SOURCE = "section1", "section2"
"""Sections of the generated code. The others prepare the axis' direction once a run, and sample thousands of receivers
each step: they are left out."""


class Forward:
    """The forward operator of one size; its wave fields are kept from run to run."""

    def __init__(self, size, order):
        shape = (size - 2 * LAYER,) * 3
        self.solver = tti_setup(
            shape=shape, spacing=(12.5,) * 3, tn=400.0, space_order=order, nbl=LAYER, preset="layers-tti"
        )
        self.waves, self.blocks = {}, {}
        self.apply(2, 1)  # compiles

    def apply(self, steps, threads, **options):
        """Steps 1 to `steps`; seconds by section."""
        group = {"nthreads": threads, "nthreads_nonaffine": threads}
        _, u, v, summary = self.solver.forward(time_M=steps, **group, **self.waves, **options)
        self.waves = {"u": u, "v": v}
        return {key.name: entry.time for key, entry in summary.items()}

    def tune(self, threads):
        """The best blocks for so many threads."""
        if threads not in self.blocks:
            self.apply(24, threads, autotune=("aggressive", "preemptive"))
            tuned = dict(self.solver.op_fwd(False)._state["autotuning"][-1]["tuned"])
            self.blocks[threads] = {name: value for name, value in tuned.items() if not name.startswith("nthreads")}
        return self.blocks[threads]

    def seconds(self, steps, threads):
        blocks = self.tune(threads)
        times = self.apply(steps, threads, **blocks)
        return {
            "update": times[UPDATE] / steps,
            "forward": (times[UPDATE] + times[SOURCE]) / steps,
            "sections": times,
            "blocks": blocks,
            "steps": steps,
        }


def main():
    order, *sizes = map(int, sys.argv[1:])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints
    forwards = {}
    for line in sys.stdin:
        asked = json.loads(line)
        size = asked["size"]
        if size not in sizes:
            raise SystemExit(f"size {size} was not announced")
        if size not in forwards:
            forwards[size] = Forward(size, order)
        answer = forwards[size].seconds(asked["steps"], asked["threads"]) | {"version": devito.__version__}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


with contextlib.suppress(BrokenPipeError):
    main()
