"""The parts of the demo: their commands, the pictures and numbers that the page shows, and commands to try next."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PARTS", "Part", "Show"]


@dataclass(frozen=True, slots=True)
class Show:
    """Command whose run the page shows.

    Attributes
    ----------
    command
        The command without ``--out``, as one types it after ``minga``.
    fields
        Fields shown as movies.
    pictures
        Names of files in the run's directory ``pictures``, with captions.
    numbers
        Observables at the end, with captions.
    receivers
        Whether the samples of the receivers are drawn.
    machines
        Whether the cells of each machine are drawn.
    scene
        Whether the run is shown in three dimensions.
    speed
        Whether cell updates a second tell anything of this run.
    """

    command: str
    fields: tuple[str, ...] = ()
    pictures: tuple[tuple[str, str], ...] = ()
    numbers: tuple[tuple[str, str], ...] = ()
    receivers: bool = False
    machines: bool = False
    scene: bool = False
    speed: bool = True

    def arguments(self, out: Path) -> list[str]:
        """Return the arguments of ``minga`` that write the run to the directory ``out``."""
        return [*shlex.split(self.command), "--out", str(out), "--force"]


@dataclass(frozen=True, slots=True)
class Part:
    """Section of the page.

    Attributes
    ----------
    name, title, text
        Name for ``--only``, heading, and description.
    shows
        Commands, in order.
    changes
        Commands to try next, each with its effect.
    needs_labs
        Whether this machine must allow clusters in a box with CPU quotas.
    """

    name: str
    title: str
    text: str
    shows: tuple[Show, ...]
    changes: tuple[tuple[str, str], ...]
    needs_labs: bool = False


PARTS = (
    Part(
        "deposit",
        "A copper deposit grows",
        "Copper ions drift and diffuse to the cathode below; where they arrive the metal grows, and its tips draw more "
        "current than its valleys. The potential, the ions and the deposit are computed together.",
        (
            Show(
                "run growth --set grid.shape='[24, 16, 16]' --set electrodeposition.length='\"0.6 mm\"' "
                "--set electrodeposition.gap='\"0.4 mm\"' --set electrodeposition.width='\"0.4 mm\"' "
                '--set electrodeposition.periodic=\'["x", "z"]\' --set electrodeposition.time.end=\'"3 s"\'',
                scene=True,
                numbers=(("current", "current density"), ("front_speed", "speed of the front")),
            ),
        ),
        (
            ("minga run growth --set electrodeposition.voltage=0.5", "a stronger field"),
            ("minga run zn-cell", "convection rolls in a thin cell"),
        ),
    ),
    Part(
        "waves",
        "A shot and its gather",
        "A hammer strikes the ground. The slow wave along the surface carries most of its energy; 31 geophones "
        "record what arrives, and when.",
        (Show("run land", fields=("vz",), receivers=True),),
        (
            ("minga run land --set elastic.medium.vs=600", "softer ground: a slower surface wave"),
            ("minga run waves", "acoustic waves in a tilted anisotropic medium"),
        ),
    ),
    Part(
        "photodiode",
        "A photodiode's gain and bandwidth",
        "An avalanche photodiode multiplies its photocurrent as the voltage nears breakdown; a PIN diode answers "
        "modulated light up to tens of gigahertz.",
        (
            Show("run apd", speed=False, pictures=(("gain.png", "Gain over the voltage"),)),
            Show(
                "run pin-ac",
                speed=False,
                pictures=(("response-with-load.png", "Response to modulated light, with the load"),),
                numbers=(
                    ("f3dB_lit", "bandwidth"),
                    ("f3dB_transit_lit", "limit by transit"),
                    ("f3dB_RC_lit", "limit by RC"),
                ),
            ),
        ),
        (
            ("minga run pin-ac --set photodiode.ac.load=10", "a smaller load"),
            ("minga run pin-inp", "currents over voltages, dark and lit"),
        ),
    ),
    Part(
        "automaton",
        "Ten million cells of Life",
        "Conway's Life from a random soup. Cells are stored as bits, and parts that no longer change are not computed.",
        (
            Show(
                "run life --set grid.shape='[3200, 3200]' --set automaton.init='{soup = 0.35, seed = 1}' "
                "--set run.steps=1000 --set output.every=100",
                fields=("cell",),
                numbers=(("population", "live cells"),),
            ),
        ),
        (
            ("minga run life --set automaton.rule='\"B36/S23\"'", "another rule: HighLife"),
            ("minga new my_rule.py && minga run my_rule.py", "a rule of your own"),
        ),
    ),
    Part(
        "cluster",
        "A cluster in a box that balances",
        "Three emulated machines with 80, 40 and 20 % of a core on a 100 Mb/s network. minga measures them and "
        "gives each the rows that it can compute in the same time; a machine that would delay the others gets none.",
        (
            Show(
                "lab run three-ages -- minga run brusselator --set grid.shape='[1600, 1600]' --set run.steps=100 "
                "--set output.every=50",
                fields=("u",),
                machines=True,
            ),
        ),
        (
            (
                "sudo minga lab run three-ages -- minga run life",
                "a light run on the same machines: how many of them are worth using?",
            ),
            ("minga plan life --machine two-ages", "what each of two machines would compute, without a run"),
        ),
        needs_labs=True,
    ),
)
