"""Public names of `import minga as mg`, which the package imports when they are first used, and public modules."""

from __future__ import annotations

from typing import Final

from minga.cli.case import read_case
from minga.cli.sweep import sweep
from minga.compile.explain import Kernel, kernel
from minga.engine.clock import Clock
from minga.engine.comm import MPIComm, SerialComm, run_virtual
from minga.engine.drawing import Drawing, Span
from minga.engine.engine import Engine, Outcome
from minga.engine.model import Model
from minga.engine.presentation import FieldStyle, Presentation
from minga.engine.program import Program
from minga.engine.stop import Stop
from minga.errors import (
    CaseError,
    KernelError,
    LaunchError,
    LayoutError,
    MingaError,
    ProgramError,
    RunError,
)
from minga.lang.block import BlockRule, block_rule, block_table
from minga.lang.cell import local
from minga.lang.derivative import derivative
from minga.lang.elementary import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    clip,
    cosh,
    erf,
    floor,
    heaviside,
    hypot,
    log2,
    log10,
    pow,
    round,
    sign,
    sinh,
    tan,
    trunc,
)
from minga.lang.expr import cast, where
from minga.lang.expr import fused_multiply_add as fma
from minga.lang.functions import (
    abs,
    argmax,
    argmin,
    bitreverse,
    coordinate,
    count,
    flush,
    index,
    lookup,
    max,
    min,
    popcount,
    sqrt,
    sum,
)
from minga.lang.iterate import iterate
from minga.lang.math import cbrt, cos, exp, expm1, log, log1p, sin, tanh
from minga.lang.neighbourhood import circular, hex, moore, offsets, von_neumann, weights
from minga.lang.operators import (
    advect,
    biharmonic,
    curl,
    d,
    d2,
    div,
    div_grad,
    grad,
    gradient_squared,
    laplace,
    spacing,
)
from minga.lang.random import random, random_bits
from minga.lang.rule import Rule, rule
from minga.lang.updates import Asynchronous, Coloured, SecondOrder, Synchronous
from minga.models.automaton.model import automaton
from minga.models.matmul.product import matmul
from minga.models.pde.model import pde
from minga.models.waves.model import fletcher
from minga.output.cells import gather_cells
from minga.output.checkpoint.keeper import Checkpointing
from minga.running.loop import Result, drive
from minga.running.observer import Observer, Phase, observer
from minga.running.observers.callback import Frame
from minga.running.observers.live import live
from minga.running.opening import open_run as open
from minga.running.run import run
from minga.running.schedule import Schedule
from minga.running.simulation import Simulation
from minga.solve.adjoint.adjoint import Adjoint, adjoint
from minga.solve.adjoint.tangent import TangentStep, tangent
from minga.space.boundary import (
    antiperiodic,
    custom,
    dirichlet,
    fixed,
    neumann,
    no_flux,
    reflect,
    robin,
    zero_gradient,
)
from minga.space.box import Box
from minga.space.field import SEED, STEP, TIME, Field, Register, Slot
from minga.space.grid import Grid
from minga.space.layout import Layout
from minga.space.region import Region

__all__ = [
    "SEED",
    "STEP",
    "TIME",
    "Adjoint",
    "Asynchronous",
    "BlockRule",
    "Box",
    "CaseError",
    "Checkpointing",
    "Clock",
    "Coloured",
    "Drawing",
    "Engine",
    "Field",
    "FieldStyle",
    "Frame",
    "Grid",
    "Kernel",
    "KernelError",
    "LaunchError",
    "Layout",
    "LayoutError",
    "MPIComm",
    "MingaError",
    "Model",
    "Observer",
    "Outcome",
    "Phase",
    "Presentation",
    "Program",
    "ProgramError",
    "Region",
    "Register",
    "Result",
    "Rule",
    "RunError",
    "Schedule",
    "SecondOrder",
    "SerialComm",
    "Simulation",
    "Slot",
    "Span",
    "Stop",
    "Synchronous",
    "TangentStep",
    "abs",
    "acos",
    "acosh",
    "adjoint",
    "advect",
    "antiperiodic",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "automaton",
    "biharmonic",
    "bitreverse",
    "block_rule",
    "block_table",
    "cast",
    "cbrt",
    "ceil",
    "circular",
    "clip",
    "coordinate",
    "cos",
    "cosh",
    "count",
    "curl",
    "custom",
    "d",
    "d2",
    "derivative",
    "dirichlet",
    "div",
    "div_grad",
    "drive",
    "erf",
    "exp",
    "expm1",
    "fixed",
    "fletcher",
    "floor",
    "flush",
    "fma",
    "gather_cells",
    "grad",
    "gradient_squared",
    "heaviside",
    "hex",
    "hypot",
    "index",
    "iterate",
    "kernel",
    "laplace",
    "live",
    "local",
    "log",
    "log1p",
    "log2",
    "log10",
    "lookup",
    "matmul",
    "max",
    "min",
    "moore",
    "neumann",
    "no_flux",
    "observer",
    "offsets",
    "open",
    "pde",
    "popcount",
    "pow",
    "random",
    "random_bits",
    "read_case",
    "reflect",
    "robin",
    "round",
    "rule",
    "run",
    "run_virtual",
    "sign",
    "sin",
    "sinh",
    "spacing",
    "sqrt",
    "sum",
    "sweep",
    "tan",
    "tangent",
    "tanh",
    "trunc",
    "von_neumann",
    "weights",
    "where",
    "zero_gradient",
]

PUBLIC: Final = (
    "minga",
    "minga.compile.portable",
    "minga.extend",
    "minga.lab",
    "minga.models",
    "minga.models.automaton",
    "minga.models.electrodeposition",
    "minga.models.matmul",
    "minga.models.pde",
    "minga.models.photodiode",
    "minga.models.waves",
    "minga.models.waves.elastic",
    "minga.network",
    "minga.plan",
    "minga.solve",
    "minga.studies",
    "minga.studies.bounanos",
)
"""Modules from which programs may import; all others may change at any time."""
