"""Cases, the input of ``minga run``: finding, reading, merging with the command line, and checking before the start.

Precedence: defaults < the case file < ``--set`` < options such as ``-n``. Every mistake is reported as one CaseError
with the key, the expected value, and the line of the file or the option that it came from.
"""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minga.case.entries import put_entry
from minga.cli.inputs import absolute, kept, named
from minga.cli.layouts import check_layout, check_mapping, computing_ranks
from minga.cli.memory import check_fields, check_shape
from minga.cli.toml import dump, line_of, parse_value
from minga.errors import CaseError, MingaError, Where, suggest
from minga.options import OutputSettings, RunOptions, RunSettings
from minga.schema import keys_of, tables_of, validate

if TYPE_CHECKING:
    from minga.engine.model import Model
    from minga.output.directory import RunDirectory
    from minga.running.observer_spec import NamedObserver

__all__ = ["Case", "Source", "arrays_that_fit", "find_source", "located", "merged", "read_case"]

_TABLES = ("grid", *RunOptions.model_fields, "observers")
_WORDS = ("name", "model")
_MOST_NAMED = 12
"""Most fields that an error message names, since solvers add hundreds of fields of their own."""


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a case: a file, or an example that ships with minga."""

    name: str
    path: Path
    text: str
    """The TOML text; empty for a Python file."""

    @property
    def is_python(self) -> bool:
        """True if the file defines a model in Python."""
        return self.path.suffix == ".py"


@dataclass(frozen=True, slots=True)
class Case:
    """A case that has been checked as far as possible without running it."""

    name: str
    source: Source
    table: Mapping[str, Any]
    """The complete table, merged from the file and the command line."""
    model: Model
    options: RunOptions
    observers: tuple[NamedObserver, ...] = ()
    """The observers that the table [observers] names."""

    @property
    def run(self) -> RunSettings:
        """Settings of the table [run]."""
        return self.options.run

    @property
    def output(self) -> OutputSettings:
        """Settings of the table [output]."""
        return self.options.output

    @property
    def section(self) -> str:
        """Name of the table with the model's own settings."""
        return section_name(str(self.table["model"]))

    def resolved(self, ranks: int | None) -> dict[str, Any]:
        """Return the table with every setting of [run] and [output] spelled out."""
        from minga.engine.stop import stop_of

        table: dict[str, Any] = {"name": self.name, "model": self.table["model"]}
        table |= {key: self.table[key] for key in ("grid", self.section, "observers") if key in self.table}
        table["run"] = self.run.model_dump() | {"ranks": ranks}
        if self.run.until is not None:
            del table["run"]["steps"]  # it follows from the time
        if stop_of(self.options.stop) is not None:
            table["stop"] = self.options.stop.model_dump(exclude_none=True)
        table["checkpoint"] = self.options.checkpoint.model_dump(exclude_none=True)
        table["output"] = self.output.model_dump() | {"fields": [field.name for field in self.fields]}
        return table

    @property
    def fields(self) -> tuple[Any, ...]:
        """Output fields of the model that the run keeps."""
        return output_fields(self.model, self.output)

    @property
    def located(self) -> RunOptions:
        """Settings of the run, with the resolved paths of its files."""
        return self.options.model_copy(update={"run": _located_run(self.run, self.source)})

    @property
    def machine(self) -> Path | None:
        """Path of the machine file to plan with, or the name of a machine that ships with minga."""
        return None if self.run.machine is None else _machine_path(self.run.machine, self.source)

    @property
    def files(self) -> list[Path]:
        """Files that the case names."""
        words = [self.table.get(key) for key in ("model", self.section)]
        return named([*words, self.run.machine, self.run.topology, self.run.edits], self.source.path.parent)

    def save(self, directory: RunDirectory, ranks: int | None) -> None:
        """Write the resolved case into the run's directory, with copies of the files that it names."""
        from minga.output.directory import disk_errors, write_whole

        table = self.resolved(ranks)
        with disk_errors(directory.inputs):
            base, folder = self.source.path.parent, directory.inputs
            table |= kept(table, ("model", self.section), base, folder)
            table["run"] |= kept(table["run"], ("machine", "topology", "edits"), base, folder)
        shape = " x ".join(map(str, self.model.grid.shape))
        where = f"a grid of {shape} cells" if self.model.growth is None else "an unbounded plane"
        write_whole(directory.case, f"# The case as it was run, on {where}.\n" + dump(table))


def find_source(target: str) -> Source:
    """Find the file that ``target`` names: a TOML or Python file, the directory of a run, or an example.

    Raise CaseError with similar names if there is none.
    """
    path = Path(target)
    if path.is_dir() and (path / "case.toml").is_file():
        path = path / "case.toml"
    if path.is_file() and path.suffix in (".toml", ".py"):
        return _read(path)
    from minga.case.examples import example, examples

    if (found := example(target)) is not None:
        return _read(found)
    if path.is_file():
        raise CaseError(f"{target} is neither a TOML file nor a Python file", remedy="a case is CASE.toml or CASE.py")
    known = examples()
    if path.suffix in (".toml", ".py") or "/" in target:
        beside = [str(p) for p in path.parent.glob("*") if p.suffix in (".toml", ".py")] if path.parent.is_dir() else []
        raise CaseError(
            f"there is no file {target!r}",
            suggestion=suggest(target, [*beside, *known]),
            remedy=f"create a file to start from: minga new {path.name}" if not beside else None,
        )
    raise CaseError(
        f"there is no case {target!r}: neither a file nor an example",
        suggestion=suggest(target, [*known, *(p.name for p in Path().glob("*.toml"))]),
        remedy=f"name a TOML file, a Python file, or one of the examples: {', '.join(known)}",
    )


def read_case(
    source: Source | str,
    overrides: Sequence[str] = (),
    options: Mapping[str, object] | None = None,
    *,
    here: bool = True,
    planning: bool = False,
) -> Case:
    """Read and check a case.

    Parameters
    ----------
    source
        A TOML or Python file, the directory of a run, the name of an example, or the result of :func:`find_source`.
    overrides
        ``key=value`` of ``--set``, values in TOML.
    options
        Values of dotted keys that other options set, such as ``{"run.ranks": 2}``; entries that are None are ignored.
    here
        True if the case will run on this machine, whose memory must be large enough for it.
    planning
        True if the case will only be planned, not run, which takes about as long for a large grid as for a small one.

    Returns
    -------
    Case
        The checked case; its attribute ``model`` is the Model, and ``run`` and ``output`` are its settings.

    Raises
    ------
    CaseError
        If there is no such case, or one of its entries is invalid.

    Examples
    --------
    ::

        case = mg.read_case("life", ["grid.shape=[64, 64]"])
        mg.run(case.model, steps=10)
    """
    source = find_source(source) if isinstance(source, str) else source
    table, origin = merged(source, overrides, options)
    with located(source, origin), arrays_that_fit():
        return _check(source, table, here, planning)


@contextlib.contextmanager
def arrays_that_fit() -> Iterator[None]:
    """Turn a lack of memory into a CaseError."""
    try:
        yield
    except MemoryError as error:
        raise CaseError(
            f"the arrays that this case makes before it starts do not fit into memory: {error}",
            key="grid.shape",
            remedy="choose fewer cells",
        ) from error


def merged(
    source: Source, overrides: Sequence[str] = (), options: Mapping[str, object] | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the tables of a case with the entries of the command line, and the origin of these by their keys.

    Parameters
    ----------
    source
        The case.
    overrides
        ``key=value`` of ``--set``, values in TOML.
    options
        Values of dotted keys that other options set; entries that are None are ignored.

    Raises
    ------
    CaseError
        If the file or an override cannot be read.
    """
    table = _parse(source)
    origin: dict[str, str] = {}
    for text in overrides:
        key, value = _override(text)
        origin[put_entry(table, key, value, f"--set {text}")] = f"--set {text}"
    for key, value in (options or {}).items():
        if value is not None:
            put_entry(table, key, value, key)
            origin[key] = "the command line"
    _replace_end(table, origin)
    return table, origin


def _replace_end(table: dict[str, Any], given: Mapping[str, str]) -> None:
    """Remove the end of a run that the file gives, `steps` or `until`, if the command line gives the other one."""
    run = table.get("run")
    for key, other in (("steps", "until"), ("until", "steps")):
        if isinstance(run, dict) and f"run.{key}" in given and f"run.{other}" not in given:
            run.pop(other, None)


def output_fields(model: Model, output: OutputSettings) -> tuple[Any, ...]:
    """Return the fields of a model that a case keeps; raise CaseError for a field that does not exist."""
    known = {field.name: field for field in model.visible}
    wanted = model.output if output.fields is None else output.fields
    for name in wanted:
        if name not in known:
            shown = list(dict.fromkeys((*model.output, *known)))[:_MOST_NAMED]
            more = f" and {len(known) - len(shown)} more" if len(known) > len(shown) else ""
            raise CaseError(
                f"the model has no field {name!r}; it has {', '.join(shown)}{more}",
                key="output.fields",
                suggestion=suggest(name, known),
            )
    return tuple(known[name] for name in wanted)


def section_name(model: str) -> str:
    """Return the name of the table of a case that holds the settings of a model."""
    return "parameters" if model.endswith(".py") else model


def _check(source: Source, table: dict[str, Any], here: bool, planning: bool) -> Case:
    from minga.case.load import load_model, python_case
    from minga.case.settings import GridSettings
    from minga.case.spec import GROUP, model_spec
    from minga.engine.stop import Watch, stop_of
    from minga.output.checkpoint.keeper import checkpointing_of
    from minga.output.snapshots.codec import check_snapshots
    from minga.output.traces import check_observed
    from minga.output.variables import variables_of
    from minga.plugins import names
    from minga.running.defaults import completed, run_entries
    from minga.running.observer_spec import named_observers

    name = table.get("model")
    if not isinstance(name, str):
        raise CaseError(
            "'model' is missing" if name is None else f"expected a word in quotes, found {name!r}",
            key="model",
            remedy=f"write model = and one of {', '.join(map(repr, names(GROUP)))}, or the name of a Python file",
        )
    python = python_case(source.path.parent / name) if name.endswith(".py") else None
    bytes_per_cell = 1 if python is not None else model_spec(name).bytes_per_cell
    section = section_name(name)
    _check_top_level(table, section)
    for key, defaults in (python.defaults if python else {}).items():
        ends = {"steps", "until"} if key == "run" and not {"steps", "until"}.isdisjoint(table.get(key, {})) else set()
        table[key] = {**{k: v for k, v in defaults.items() if k not in ends}, **table.get(key, {})}
    said = {key: table.get(key, {}) for key in RunOptions.model_fields}
    options = validate(RunOptions, said | {"run": run_entries(None, said["run"])})
    checkpointing_of(options)  # raises if its entries exclude each other
    if python is None:
        _check_grid(table.get("grid", {}), name, keys_of(model_spec(name).settings))
    grid = validate(GridSettings, table.get("grid", {}), "grid")
    check_shape(grid.shape, here, bytes_per_cell)
    if python is not None:
        model = python.model(grid, table.get(section, {}))
    else:
        model = load_model(name, table, grid, source.path.parent, planning=planning)
    options = completed(validate(RunOptions, said | {"run": run_entries(model, said["run"])}), model)
    run, output = options.run, options.output
    check_observed(model, output.observe)
    if (stop := stop_of(options.stop)) is not None:
        Watch(model, stop)  # raises if the model lacks a quantity that the condition names
    check_fields(model, here)
    variables_of(output_fields(model, output), f"model {model.name!r}")
    check_snapshots(output_fields(model, output), output)
    computing = None if run.ranks is None else computing_ranks(run.ranks, options)
    if computing is not None or ":" not in run.layout:  # otherwise it depends on the number of ranks, checked later
        check_layout(run.layout, model, computing or 1)
    check_mapping(_located_run(run, source), model, computing)
    if run.machine is not None:
        from minga.plan.machine.machine import read_machine

        read_machine(_machine_path(run.machine, source))
    observers = named_observers(table.get("observers", {}))
    return Case(str(table.get("name", source.name)), source, table, model, options, observers)


def _check_grid(grid: object, model: str, settings: Sequence[str]) -> None:
    """Raise CaseError for entries of [grid] that belong elsewhere: into the table of the model, or into `boundary`."""
    for key in grid if isinstance(grid, Mapping) else ():
        if key in settings and key not in ("shape", "boundary"):
            raise CaseError(
                f"[grid] has no {key}: it is a setting of [{model}]", key=f"grid.{key}", remedy=f"write {model}.{key}"
            )
        if key == "periodic":
            raise CaseError(
                "[grid] has no periodic",
                key="grid.periodic",
                remedy='write boundary = "periodic", or an entry for each axis: ["zero-gradient", "periodic"]',
            )


def _located_run(run: RunSettings, source: Source) -> RunSettings:
    """Return settings with the paths of files that lie next to the case: of the machine, the topology and the edits."""
    machine = None if run.machine is None else str(_machine_path(run.machine, source))
    topology, edits = _located(run.topology, source), _located(run.edits, source)
    return run.model_copy(update={"machine": machine, "topology": topology, "edits": edits})


def _located(name: str | None, source: Source) -> str | None:
    """Return the path of a file next to the case; the name itself if there is no such file."""
    beside = None if name is None else source.path.parent / name
    return str(beside) if beside is not None and beside.is_file() else name


def _machine_path(name: str, source: Source) -> Path:
    """Return the path of a machine file next to the case, or the name of a machine that ships with minga."""
    beside = source.path.parent / name
    return beside if beside.exists() or Path(name).suffix else Path(name)


def _of_a_command(key: str) -> str:
    """Return what to do with a case that has the table of a command, such as [survey], or ""."""
    from minga.cli.commands import GROUP
    from minga.plugins import names

    return f"such a case is for the command minga {key}" if key in names(GROUP) else ""


def _check_top_level(table: Mapping[str, Any], section: str) -> None:
    known = (*_WORDS, section, *_TABLES)
    for key, value in table.items():
        if key not in known:
            raise CaseError(
                f"unknown {'table' if isinstance(value, Mapping) else 'key'} {key!r}",
                key=key,
                suggestion=_in_a_table(key) or suggest(key, known),
                remedy=_of_a_command(key)
                or f"a case has the keys {', '.join(_WORDS)} and the tables {', '.join((section, *_TABLES))}",
            )
        if key in _WORDS and not isinstance(value, str):
            raise CaseError(f"{key}: expected a word in quotes, found {value!r}", key=key)
        if key not in _WORDS and not isinstance(value, Mapping):
            raise CaseError(
                f"{key}: expected a table, found {value!r}", key=key, remedy=f"write [{key}] and its entries"
            )


def _in_a_table(key: str) -> str | None:
    """Return the full name of an entry whose table was left out, None if no table has it."""
    return next((f"{table}.{key}" for table, kind in tables_of(RunOptions).items() if key in kind.model_fields), None)


def _parse(source: Source) -> dict[str, Any]:
    if source.is_python:
        return {"model": source.path.name}
    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at ")
        line = int(place.split()[1].rstrip(",")) if place.startswith("line") else 0
        raise CaseError(
            f"the file is not valid TOML: {message}",
            where=Where(_short(source.path), line),
            remedy="see https://toml.io",
        ) from error


def _read(path: Path) -> Source:
    try:
        text = "" if path.suffix == ".py" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise CaseError(f"cannot read {path}: {reason}") from error
    name = path.stem
    return Source(path.resolve().parent.name if name == "case" else name.replace("_", "-"), path.resolve(), text)


def _override(text: str) -> tuple[str, object]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise CaseError(f"expected KEY=VALUE, found {text!r}", key="--set", remedy="such as --set run.steps=10")
    return key.strip(), absolute(parse_value(value.strip()))


@contextlib.contextmanager
def located(source: Source, origin: Mapping[str, str]) -> Iterator[None]:
    """Add to errors the option or the line of the file that set their key, and turn all into CaseErrors."""
    try:
        yield
    except CaseError as error:
        if error.where is None and error.key is not None:
            error.where = _place(error.key, source, origin)
        elif isinstance(error.where, Where):
            error.where = Where(_short(Path(error.where.file)), error.where.line)
        raise
    except MingaError as error:  # for example a kernel that cannot be traced, which is also a mistake in the input
        where = error.where or Where(_short(source.path))
        raise CaseError(error.message, where=where, remedy=error.remedy) from error


def _place(key: str, source: Source, origin: Mapping[str, str]) -> Where | str:
    for known, said in origin.items():
        if key == known or key.startswith((f"{known}.", f"{known}[")) or known.startswith(f"{key}."):
            return said
    return Where(_short(source.path), line_of(source.text, key))


def _short(path: Path) -> str:
    """Return a path relative to the working directory if it lies inside it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
