"""Make docs/verification.md and its pictures from what tests found: `make verification`.

python scripts/verification.py DIRECTORY   first takes in what tests stored there (VERIFICATION=DIRECTORY pytest ...);
                                           numbers of tests that did not run stay as they were
python scripts/verification.py             only draws the stored numbers again
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STORED = ROOT / "benchmarks" / "results" / "verification.json"
PAGE = ROOT / "docs" / "verification.md"
IMAGES = ROOT / "docs" / "images" / "verification"
INK, OURS, POINTS = "#555555", "#1f3b57", "#c8381e"

SECTIONS = {
    "orders": (
        "Orders",
        (
            "How fast errors fall: log2 of the ratio of errors when cells, or time steps, are halved. Manufactured"
            " solutions have sources that make a chosen solution exact; Beltrami's flow, whose vorticity is its"
            " velocity, is exact without."
        ),
    ),
    "neutral": (
        "Neutral baths",
        (
            "Exact results for a bath without charge: the limiting current, Sand's time, the diffusion potential, and"
            " the current-voltage curve tanh(zV/4) that thin layers approach."
        ),
    ),
    "layers": (
        "Double layers",
        "Gouy and Chapman's layer at rest, by distance from the wall in Debye lengths, and the dielectric time.",
    ),
    "steady": (
        "Steady current with resolved layers",
        (
            "The scaled problem of a 1:1 salt between electrodes that hold the cation; against an adaptive collocation"
            " method with 7 digits."
        ),
    ),
    "membrane": (
        "In front of a membrane",
        "The layers of an ion-selective membrane, scaled; against an adaptive collocation method.",
    ),
    "electroconvection": (
        "Electroconvection",
        (
            "The instability of these layers: growth rates and critical voltages of linear stability theory (Chebyshev"
            " collocation, 90 to 150 points; kappa 0.5), and the vortices that follow."
        ),
    ),
    "slot": (
        "Flow between two plates",
        (
            "What a gradient of concentration along a thin horizontal cell drives, and how that flow spreads the salt:"
            " exact for a neutral bath."
        ),
    ),
    "fronts": (
        "Salt that an electrode feeds into a thin cell",
        (
            "By its weight it runs along the plates, and across them it diffuses: its mean distance from the electrode"
            " grows as the square root of time, and is that of slots that spread, with D_eff = D (1 + (G h^4 / D)^2 /"
            " 362880) of the gradient at each place."
        ),
    ),
    "duct": ("A square duct", "Shah and London, Laminar Flow Forced Convection in Ducts, 1978."),
    "cavity": (
        "The lid-driven cavity",
        (
            "Re 100: Marchi, Suero and Araki, J. Braz. Soc. Mech. Sci. Eng. 31, 2009. Re 400: Ghia, Ghia and Shin,"
            " J. Comput. Phys. 48, 1982. Re 1000: Botella and Peyret, Computers & Fluids 27, 1998."
        ),
    ),
    "cube": ("The lid-driven cube", "Albensoeder and Kuhlmann, J. Comput. Phys. 206, 2005."),
    "heat": (
        "Flow that weight drives",
        (
            "A box of air heated from the side: de Vahl Davis, Int. J. Numer. Methods Fluids 3, 1983, and at Ra 1e6"
            " Le Quere, Computers & Fluids 20, 1991. A cube: Tric, Labrosse and Betrouni, Int. J. Heat Mass Transfer"
            " 43, 2000. Heated from below: Chandrasekhar, Hydrodynamic and Hydromagnetic Stability, 1961. With a fixed"
            " flux: the linear problem, solved by Chebyshev's polynomials, which gives 720 for long waves."
        ),
    ),
    "rest": ("Fluid that should rest", "Layers in equilibrium drive nothing, down to the rounding."),
    "protocols": (
        "Programs of currents and voltages",
        (
            "Copper in an excess of acid, by closed formulas: Cottrell, Sand, Berzins and Delahay, pulses in a layer by"
            " the sum over its modes, and the impedances of Randles and Warburg."
        ),
    ),
    "couples": (
        "Two dissolved ions",
        (
            "A couple in an excess of salt, by closed formulas and the semi-integral of the current: Randles and"
            " Sevcik, Nicholson and Shain, Cottrell, Sand, and Warburg. psi is Nicholson's parameter."
        ),
    ),
    "baths": (
        "Concentrated baths",
        "Copper sulphate with ion pairs: PHREEQC, and integrals of D/(1 - t) and of the activities' gradients.",
    ),
    "deposits": (
        "Deposits",
        (
            "Dimensions of diffusion-limited aggregates (1.71 and 2.5, Nicolas-Carlock and Carrillo-Estrada, 2019),"
            " fronts that follow the drift of anions (Chazalviel, 1990), and the linear theory of waves on a front."
        ),
    ),
    "conserved": (
        "What is conserved",
        "Over a thousand time steps, of two dimensions and with flow: relative to what there is.",
    ),
    "photodiode: silicon": (
        "Photodiodes: a silicon diode",
        (
            "Currents and fields on the 679 nodes of `si-1`, by DEVSIM in extended precision on the same nodes. The"
            " quasi-static capacitance is that of the depletion approximation."
        ),
    ),
    "photodiode: InP/InGaAsP/InGaAs": (
        "Photodiodes: an avalanche photodiode",
        (
            "Currents without ionisation by DEVSIM in extended precision on the same nodes; gains, breakdown and"
            " punch-through by an independent finite-volume program, and by integrals of the ionisation coefficients."
        ),
    ),
    "photodiode: barriers": (
        "Photodiodes: barriers",
        (
            "Thermionic emission, q v N exp(-barrier/kT), in the field of the solution: lowered by the image force, and"
            " times 1 + Gamma where carriers tunnel, with Gamma integrated by 200 001 points."
        ),
    ),
    "photodiode: breakdown of InP by ionisation integrals": (
        "Photodiodes: breakdown of InP",
        "Constant fields and one-sided junctions, by integrals of the ionisation coefficients.",
    ),
    "photodiode: orders": (
        "Photodiodes: orders",
        "A prescribed potential, and the doping with which it solves Poisson's equation; on 51 and 101 nodes.",
    ),
    "photodiode: orders with two axes": (
        "Photodiodes: orders with two axes",
        (
            "log2 of the ratio of differences between forward currents on 31, 61 and 121 nodes along both axes. Next to"
            " the edge of a contact the error falls with the distance itself."
        ),
    ),
    "photodiode: junctions that are cylinders": (
        "Photodiodes: junctions that are cylinders",
        (
            "Poisson's equation along the radius, with SciPy's banded solver on 8000 cells: for a core of p silicon on"
            " the axis of a round device, and for a quarter of a circle in the corner of a plane."
        ),
    ),
    "photodiode: admittance and response": (
        "Photodiodes: admittance and response",
        (
            "A p+n diode of silicon (p 1e18, 1 um; n 1e15, 100 um), `si-1`, and a p-i-n diode of InGaAs, by an"
            " independent finite-volume program with complex-step derivatives and refined solutions on the same nodes."
            " DEVSIM 2.11.2 agrees in 8 to 9 digits of C, and of G under forward bias; in reverse bias its G has few"
            " digits, as its oscillations are solved in double precision."
        ),
    ),
    "photodiode: transients": (
        "Photodiodes: transients",
        (
            "A step of light on a p-i-n diode of InGaAs, and the reverse recovery of a diode of silicon, by an"
            " independent program, extrapolated from two step lengths. DEVSIM, with backward Euler and the same"
            " extrapolation, is within 4e-5 of the light step, and gives -0.363121 A/cm2 at 100 ns and the same"
            " crossing of the recovery."
        ),
    ),
    "photodiode: transients with two axes": (
        "Photodiodes: transients with two axes",
        "Against devices with one axis, the charge that is conserved, and the quasi-static capacitance.",
    ),
    "photodiode: transit of a sheet of carriers": (
        "Photodiodes: transit of a sheet of carriers",
        (
            "N carriers with a velocity v that cross a layer of width W make the current q N v/W for the time W/v, and"
            " spread by diffusion, which a discretisation whose carriers jump from node to node enlarges."
        ),
    ),
    "photodiode: excess noise": (
        "Photodiodes: excess noise",
        (
            "McIntyre's F = k M + (1 - k)(2 - 1/M); the recurrence of Hayat, Saleh and Teich for carriers with dead"
            " space, which a Monte Carlo of 3e5 pairs confirms within 1 %; and the profile of the ionisation"
            " coefficients in `apd`, all by independent programs."
        ),
    ),
    "photodiode: noise by the adjoint": (
        "Photodiodes: noise by the adjoint",
        "Nyquist's and Schottky's formulas, the profile of one axis, and devices that are two devices side by side.",
    ),
    "photodiode: dead space in a run": (
        "Photodiodes: currents with dead space",
        (
            "The recurrence of Hayat, Saleh and Teich by an independent program, in uniform fields and in that of a"
            " run; M and F of the noise by a Monte Carlo that follows every carrier, and by the local theory."
        ),
    ),
    "photodiode: boxes of another material": (
        "Photodiodes: a material in a rectangle of two axes",
        "A rectangle across the whole device is a layer.",
    ),
    "photodiode: polygons of another material": (
        "Photodiodes: a material in a polygon of two axes",
        "Pairs in a triangle by an integral; what enters leaves; a polygon across the whole device is a layer.",
    ),
    "photodiode: optics": (
        "Photodiodes: reflection and quantum efficiency",
        "Films by the package tmm 0.2.0 from PyPI, silicon with the indices of Green 2008.",
    ),
    "photodiode: tunnelling": (
        "Photodiodes: tunnelling",
        "Kane's coefficients, generation from band to band, and the enhancement of traps by an independent program.",
    ),
    "equation orders": (
        "Equations from text: orders",
        (
            "The same for `mg.pde`: operators and walls against exact solutions on finer grids, integrators with"
            " shorter steps."
        ),
    ),
    "equation values": (
        "Equations from text: values",
        (
            "Series, exact waves, and values of other programs: Cole and Hopf for Burgers' equation; 256 modes and"
            " DOP853 for Allen and Cahn; 768 modes for Kuramoto and Sivashinsky; errors of differences of second and"
            " fourth order, which are known from independent programs."
        ),
    ),
}
"""Titles of the page's parts, in order, and where their numbers come from."""


def take_in(content: dict[str, Any], directory: Path) -> dict[str, Any]:
    """The stored content with what tests left in a directory, in place of what they had found before."""
    tests = dict(content["tests"])
    for path in sorted(directory.glob("*.json")):
        found = json.loads(path.read_text())
        tests[found.pop("test")] = found
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return {"date": date, "tests": dict(sorted(tests.items()))}


def of_section(content: dict[str, Any], kind: str, section: str) -> list[dict[str, Any]]:
    """All numbers, or curves, of a part of the page."""
    return [item for test in content["tests"].values() for item in test[kind] if item["section"] == section]


def page(content: dict[str, Any]) -> str:
    """The page, in Markdown."""
    numbers = [item for section in SECTIONS for item in of_section(content, "numbers", section)]
    met = sum(item["met"] for item in numbers)
    lines = [
        "# Verification",
        "",
        'What `model = "electrodeposition"`, `model = "photodiode"` and equations from text compute, beside exact and',
        "published numbers. Each line is a comparison that a test in tests/physics makes. `make verification` runs",
        "them all, an hour or more, and writes this page.",
        "",
        f"{content['date'][:10]}: {met} of {len(numbers)} numbers are as close as they should be.",
    ]  # fmt: skip
    for section, (title, source) in SECTIONS.items():
        if found := of_section(content, "numbers", section):
            lines += [
                "",
                f"## {title}",
                "",
                source,
                "",
                "| | found | expected | off by | allowed |",
                "|---|---|---|---|---|",
            ]
            lines += map(row, found)
        if of_section(content, "curves", section):
            lines += ["", f"![{title}: lines are minga's, points the others'](images/verification/{section}.png)"]
    return "\n".join(lines) + "\n"


def row(item: dict[str, Any]) -> str:
    """A line of a table."""
    found, expected, within = item["found"], item["expected"], item["within"]
    sense = item["sense"]
    if sense == "relative":
        cells = f"{found:.6g}", f"{expected:.7g}", percent(found / expected - 1.0), percent(within)
    elif sense == "absolute":
        cells = f"{found:.6g}", f"{expected:.6g}", f"{found - expected:.1e}", f"{within:g}"
    elif sense == "between":
        cells = f"{found:.2f}", f"{expected:.3g} to {within:.3g}", "", ""
    else:
        cells = f"{found:.2g}", "0", f"{found:.1e}", f"{expected:g}"
    missed = "" if item["met"] else " **missed**"
    return f"| {item['what']}{missed} | " + " | ".join(cells) + " |"


def percent(part: float) -> str:
    """Such as "0.03 %"."""
    return f"{abs(100.0 * part):.2g} %"


def draw(content: dict[str, Any]) -> None:
    """A picture for each part that has curves."""
    from matplotlib.figure import Figure

    IMAGES.mkdir(parents=True, exist_ok=True)
    for section in SECTIONS:
        if not (curves := of_section(content, "curves", section)):
            continue
        across = min(3, len(curves))
        down = -(-len(curves) // across)
        figure = Figure(figsize=(3.1 * across + 0.4, 2.5 * down), layout="constrained")
        plots = figure.subplots(down, across, squeeze=False).ravel()
        for plot, curve in zip(plots, curves, strict=False):
            plot.plot(curve["x"], curve["found"], color=OURS, linewidth=1.5)
            plot.plot(curve["points_x"], curve["points"], "o", color=POINTS, markersize=4, fillstyle="none")
            plot.set_title(curve["what"], fontsize=9, loc="left")
            plot.tick_params(labelsize=8, colors=INK)
            for side in ("top", "right"):
                plot.spines[side].set_visible(False)
        for plot in plots[len(curves) :]:
            plot.set_visible(False)
        figure.savefig(IMAGES / f"{section}.png", dpi=100, metadata={"Software": None})


def images(content: dict[str, Any]) -> Iterator[Path]:
    """The pictures that the page shows."""
    for section in SECTIONS:
        if of_section(content, "curves", section):
            yield IMAGES / f"{section}.png"


def check_sections(content: dict[str, Any]) -> None:
    """Exit if numbers belong to sections that the page does not have."""
    found = {item["section"] for test in content["tests"].values() for item in test["numbers"]}
    if unknown := sorted(found - set(SECTIONS)):
        sys.exit(f"no such sections: {', '.join(unknown)}; add them to SECTIONS")


def main() -> int:
    content = json.loads(STORED.read_text()) if STORED.exists() else {"date": "", "tests": {}}
    if len(sys.argv) > 1:
        content = take_in(content, Path(sys.argv[1]))
        STORED.write_text(json.dumps(content, indent=1) + "\n")
    check_sections(content)
    PAGE.write_text(page(content))
    draw(content)
    missed = [item["what"] for test in content["tests"].values() for item in test["numbers"] if not item["met"]]
    for what in missed:
        print(f"MISSED {what}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
