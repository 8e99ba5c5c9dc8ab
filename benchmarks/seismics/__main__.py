"""Measure shots, gradients and inversions of waves beside Devito; store the numbers with a description of the machine.

python -m benchmarks.seismics                some minutes; stores benchmarks/results/seismics/FAMILY.json, puts the
                                             tables of all families of processors into docs/performance.md, and draws
                                             the inversion
python -m benchmarks.seismics --quick        small and few: numbers that mean nothing
python -m benchmarks.seismics --table        the stored numbers as Markdown, without measuring

Devito comes with `make bench-seismics`; where it is not installed it is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from benchmarks.command import asked
from benchmarks.machine import by_name, measured
from benchmarks.page import shown
from benchmarks.seismics.forward import measure_forward
from benchmarks.seismics.inversion import measure_inversion
from benchmarks.seismics.speed import measure_speed
from benchmarks.timing import Effort

PARTS: Final = {"speed": measure_speed, "forward": measure_forward, "inversion": measure_inversion}
COLUMNS: Final = ("forward", "devito forward", "gradient", "devito gradient")


def run(parts: Sequence[str], quick: bool) -> dict[str, Any]:
    """Measure these parts; what is stored."""
    return measured(lambda: by_name(PARTS, parts, quick), quick, Effort.least() if quick else Effort())


def markdown(content: Mapping[str, Any]) -> str:
    """The numbers as tables."""
    machine = content["machine"]
    lines = [f"{content['date'][:10]}, {machine['processor']} ({machine['llvm_name']}), one thread."]
    for part, table in (("speed", _speed), ("forward", _forward), ("inversion", _inversion)):
        if content.get(part):
            lines += ["", *table(content[part])]
    return "\n".join([*lines, ""])


def _speed(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    heads = (*COLUMNS, "forward, Devito / minga", "gradient, Devito / minga")
    lines = ["| seconds of processor time | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for row in rows:
        cells = [row["seconds"].get(name) for name in COLUMNS] + [row["ratios"].get(w) for w in ("forward", "gradient")]
        lines.append(f"| order {row['order']}, {row['steps']} steps | " + " | ".join(map(_number, cells)) + " |")
    return lines


def _forward(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    lines = ["| shot, seconds of processor time | minga | devito | Devito / minga |", "|---|---|---|---|"]
    for row in rows:
        cells = [row["seconds"].get("minga"), row["seconds"].get("devito"), row.get("ratio")]
        lines.append(f"| {row['shot']} | " + " | ".join(map(_number, cells)) + " |")
    return lines


def _inversion(found: Mapping[str, Any]) -> list[str]:
    lines = [
        "| inversion | seconds for a gradient of all shots | last misfit / first | error of the model, m/s | of data |",
        "|---|---|---|---|---|",
    ]
    for name in ("minga", "minga, matched layers", "devito"):
        if name in found:
            part = found[name]
            cells = [
                f"{part['seconds'] / part['evaluations']:.2f}", f"{part['misfits'][-1]:.1e}",
                f"{part['errors'][0]:.0f} → {part['errors'][-1]:.0f}", f"{part['data differ by']:.1e}",
            ]  # fmt: skip
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    if "ratios" in found:
        differ = f"the gradients of both differ by {found['gradients differ by']:.1e}"
        ratios = ", ".join(f"Devito / {name}: {value:.2f}" for name, value in found["ratios"].items())
        lines += ["", f"{ratios}. Where no wave comes back from the layers, {differ}."]
    return lines


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def main() -> int:
    options = asked(
        "benchmarks.seismics",
        "Measure shots, gradients and inversions",
        PARTS,
        "seismics",
        table=True,
        update=True,
    )
    shown(options, "seismics", run, markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
