"""The command ``minga``. Each subcommand has its own module, imported when it is called, so that help is quick."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from minga.cli import completion
from minga.cli.commands import Commands
from minga.cli.flags import SettingsCommand, setting
from minga.errors import MingaError
from minga.extras import EXTRAS, missing
from minga.launch.exit_codes import FAILED, INTERRUPTED, OK
from minga.plugins import names

__all__ = ["app", "main"]

app = typer.Typer(
    name="minga",
    cls=Commands,
    help="Structured-grid simulations on the computers you have.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Run = typer.Argument(metavar="RUN", help="The directory of a run.", autocompletion=completion.runs)
Case = typer.Argument(
    metavar="CASE",
    help="A TOML file, a Python file that defines a model, or the name of an example.",
    autocompletion=completion.cases,
)
Overrides = typer.Option(
    "--set",
    metavar="KEY=VALUE",
    help="Set an entry of the case, such as run.steps=10; may be repeated.",
    autocompletion=completion.keys,
)
Hosts = typer.Option(
    "--hosts", metavar="FILE", help="A file that lists the hosts to use, one a line; they are reached by ssh."
)
Shell = typer.Option("--shell", help="Program that is called as SHELL HOST COMMAND, in place of ssh.")


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Structured-grid simulations on the computers you have."""
    if version:
        import minga

        sys.stdout.write(f"minga {minga.__version__}\n")
        raise typer.Exit


@app.command(cls=SettingsCommand)
def run(
    case: Annotated[str, Case],
    ranks: Annotated[int | None, setting("run.ranks")] = None,
    threads: Annotated[int | None, setting("run.threads")] = None,
    overrides: Annotated[list[str] | None, Overrides] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Directory of the run; by default runs/NAME.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run in the directory --out.")] = False,
    mapping: Annotated[str | None, setting("run.mapping", autocompletion=completion.mappings)] = None,
    topology: Annotated[str | None, setting("run.topology", metavar="16x2x2")] = None,
    machine: Annotated[str | None, setting("run.machine", metavar="FILE")] = None,
    device: Annotated[str | None, setting("run.device", metavar="gpu")] = None,
    hosts: Annotated[Path | None, Hosts] = None,
    shell: Annotated[str, Shell] = "ssh",
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve a live page of the run to browsers on this machine.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted run; CASE is its directory.")] = False,
    trace: Annotated[bool, setting("output.trace")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Run a case, for example `minga run life -n 2`. All output goes to one directory."""
    from minga.cli import run as command
    from minga.cli.finish import summary
    from minga.cli.resume import resume_hint
    from minga.output.directory import RunDirectory

    settings = {
        "run.ranks": ranks,
        "run.threads": threads,
        "run.mapping": mapping,
        "run.topology": topology,
        "run.machine": machine,
        "run.device": device,
        "output.trace": trace or None,
    }
    request = command.RunRequest(case, settings, tuple(overrides or ()), out, force, serve, resume, hosts, shell)
    with contextlib.redirect_stdout(sys.stderr):  # output of a Python case must not mix with the result
        result, status = command.run(request)
    if result is not None:
        if as_json:
            _print(json.dumps(result, allow_nan=False))
        else:
            _print(summary(result, RunDirectory(Path(result["run"]))))
        if status:
            hint = resume_hint(RunDirectory(Path(result["run"])))
            kept = "; ".join(filter(None, ("everything computed so far is kept", hint)))
            sys.stderr.write(f"minga: stopped after step {result['steps']}; {kept}\n")
    raise typer.Exit(status)


@app.command()
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write: my_rule.py or my_case.toml.")],
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            help="Kind of a Python file: rule (the default), block or pde.",
            autocompletion=completion.kinds,
        ),
    ] = None,
    rule: Annotated[str | None, typer.Option("--rule", help="Rule of a case file; by default B3/S23.")] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="NAME",
            help="Start from this example, or from the first example of this model; see `minga list`.",
            autocompletion=completion.beginnings,
        ),
    ] = None,
) -> None:
    """Write a file to start from, for example `minga new my_rule.py`. It runs as it is, and explains what to change."""
    from minga.cli.new import new as command

    _print(command(file, kind, rule, source))


@app.command()
def show(
    run: Annotated[Path, Run],
    field: Annotated[
        str | None,
        typer.Option("--field", help="The field to show; by default the first.", autocompletion=completion.fields),
    ] = None,
    frame: Annotated[str, typer.Option("--frame", help="Number of the frame, from 0; -1 is the last.")] = "-1",
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            help="kitty, sixel, blocks, or none to print a path; by default chosen for the terminal.",
            autocompletion=completion.protocols,
        ),
    ] = "auto",
) -> None:
    """Show a frame of a run in the terminal, or print the path of its picture."""
    from minga.cli.show import show as command

    _print(command(run, field, frame, protocol))


@app.command("list")
def listing(
    context: typer.Context,
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help="models, examples, formats, observers, routes or commands; by default all of them.",
            autocompletion=completion.listed,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List everything installed: models, examples, export formats, observers, routes and commands."""
    from minga.cli import listing as command

    found = command.listing(what, context)
    _print(json.dumps(found) if as_json else command.text(found))


@app.command(cls=SettingsCommand)
def plan(
    case: Annotated[str, Case],
    ranks: Annotated[
        int | None,
        typer.Option("-n", "--ranks", help="Number of ranks; by default as many as the machine has cores for."),
    ] = None,
    machine: Annotated[
        Path | None,
        typer.Option(
            "--machine", metavar="FILE", help="A JSON file that describes a machine; by default this machine is timed."
        ),
    ] = None,
    threads: Annotated[int | None, setting("run.threads")] = None,
    overrides: Annotated[list[str] | None, Overrides] = None,
    scaling: Annotated[
        bool,
        typer.Option("--scaling", help="Also predict strong scaling (fewer ranks) and weak scaling (a growing grid)."),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE", help="Draw the scaling curves into a .png or .svg file; by default scaling.png."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write the plan to this JSON file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    hosts: Annotated[Path | None, Hosts] = None,
    shell: Annotated[str, Shell] = "ssh",
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as one JSON object.")] = False,
) -> None:
    """Show, before anything runs, which ranks would compute which cells of a case, the time of a step, and why."""
    from minga.cli import plan as command

    chosen = tuple(overrides or ())
    request = command.PlanRequest(case, ranks, machine, threads, chosen, scaling, plot, out, force, hosts, shell)
    with contextlib.redirect_stdout(sys.stderr):  # output of a Python case must not mix with the result
        answer = command.plan(request)
    if answer is not None:
        _print(json.dumps(command.as_json(answer), allow_nan=False) if as_json else command.text(answer))


@app.command()
def export(
    run: Annotated[Path, Run],
    out: Annotated[Path, typer.Option("--out", help="The file to write.")],
    field: Annotated[
        list[str] | None,
        typer.Option(
            "--field",
            help="The field to export. It may be left out if there is only one, and repeated for formats that hold "
            "several fields, such as nc and vtr, which hold all fields by default.",
            autocompletion=completion.fields,
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help=f"{', '.join(names('minga.formats'))}; by default the suffix of --out.",
            autocompletion=completion.formats,
        ),
    ] = None,
    frame: Annotated[
        str,
        typer.Option(
            "--frame",
            help="Number of the frame, from 0; -1 is the last; all exports every frame.",
        ),
    ] = "-1",
    scale: Annotated[
        int | None,
        typer.Option("--scale", help="Pixels along the side of a cell, for png pictures without axes and colour bar."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Write frames of fields, or the samples of receivers (--field receivers), in formats of other programs."""
    from minga.cli.export import export as command

    _print(command(run, field, form, out, frame, scale, force))


@app.command()
def watch(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN]",
            help="The directory of a run; by default the newest one in runs.",
            autocompletion=completion.runs,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port of the page; by default any free port.")
    ] = 0,
) -> None:
    """Show a run in a browser on this machine, during the run or afterwards. Closing the page never affects the run."""
    from minga.cli.watch import watch as command

    command(run, port)


@app.command()
def movie(
    run: Annotated[Path, Run],
    out: Annotated[
        Path | None, typer.Option("--out", help="A .gif, .webp, .png or .mp4 file; by default RUN/FIELD.gif.")
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(
            "--field", help="The field; may be left out if there is only one.", autocompletion=completion.fields
        ),
    ] = None,
    fps: Annotated[float, typer.Option("--fps", help="Frames per second.")] = 12.0,
    width: Annotated[int, typer.Option("--width", help="Maximum length of the longer side in pixels.")] = 640,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Make a movie of the frames of a run."""
    from minga.cli.movie import movie as command

    _print(command(run, field, out, fps, width, force))


@app.command()
def average(
    run: Annotated[Path, Run],
    of: Annotated[
        list[str] | None,
        typer.Option("--of", help="The observable; may be repeated. By default all but times and counts."),
    ] = None,
    after: Annotated[
        str,
        typer.Option("--after", help='Time, 0.5 or "500 ms", or step of models without a clock, from which on.'),
    ] = "0",
) -> None:
    """Average observables of a run over time, with their fluctuations and the standard errors of both."""
    from minga.cli.average import average as command

    _print(command(run, of or (), after))


@app.command()
def report(run: Annotated[Path, Run]) -> None:
    """Write the report of a run again, as one HTML file."""
    from minga.output.directory import RunDirectory
    from minga.view.report import write_report

    _print(str(write_report(RunDirectory.open_early(run))))


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="The directory of a run.", autocompletion=completion.runs)],
    b: Annotated[Path, typer.Argument(metavar="B", help="The directory of another.", autocompletion=completion.runs)],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare two runs: settings, fields after the last common step, observables, and speeds."""
    from minga.cli import compare as command

    comparison = command.compare(a, b)
    _print(command.as_json(comparison) if as_json else command.text(comparison))


@app.command()
def install(
    hosts: Annotated[Path, typer.Option("--hosts", metavar="FILE", help="A file that lists the hosts, one a line.")],
    shell: Annotated[str, Shell] = "ssh",
) -> None:
    """Copy this Python, with minga and all packages, to hosts that do not have it, under the same path as here."""
    from minga.launch.hosts import shell_launcher
    from minga.launch.hosts_file import read_hosts
    from minga.launch.install import Environment
    from minga.launch.install import install as copy_to
    from minga.launch.reach import is_here

    others = [host for host in read_hosts(hosts) if not is_here(host, shell)]
    copy_to(others, shell_launcher(shell), Environment.here(), _print)


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Show what minga finds on this machine: compiler, cores, MPI and GPU, with any problems."""
    from minga.cli import doctor as command

    findings = command.examine()
    sick = any(finding.state == "problem" for finding in findings)
    if as_json:
        _print(json.dumps(command.as_json(findings)))
    else:
        marks = {"ok": "ok", "note": "note", "problem": "PROBLEM"}
        for finding in findings:
            _print(f"{marks[finding.state]:8}{finding.name:14}{finding.text}")
    raise typer.Exit(FAILED if sick else OK)


def main() -> None:
    """Run the command line; turn errors that the user can act on into a message on standard error and a status."""
    try:
        app(prog_name="minga")
    except MingaError as error:
        _fail(error)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        _fail(missing(error.name))
    except KeyboardInterrupt:  # before a command has begun; later ones are handled by typer
        sys.exit(INTERRUPTED)


def _fail(error: MingaError) -> NoReturn:
    """Report an error and end the process with its status."""
    if _speaks():
        sys.stderr.write(f"minga: {error}\n")
    sys.exit(error.exit_status)


def _speaks() -> bool:
    """Return True if this process reports errors that all processes of its job have found."""
    from minga.launch.launcher import surrounding_job

    job = surrounding_job()
    return job is None or job.rank == 0


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
