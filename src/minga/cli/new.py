"""The command ``minga new FILE``: write a file to start from, a rule or PDE in Python or a case, that runs as it is."""

from __future__ import annotations

import contextlib
import keyword
import re
import shlex
import shutil
import tomllib
from pathlib import Path

from minga.case.files import SHIPPED
from minga.cli.inputs import named
from minga.errors import CaseError, RunError, suggest
from minga.output.directory import write_whole

__all__ = ["KINDS", "new"]

KINDS = {
    "rule": "a cellular automaton: one cell and its neighbours",
    "block": "a cellular automaton of blocks of 2 x 2 cells, such as reversible and particle rules",
    "pde": "a finite-difference equation",
}
"""Kinds of Python files to start from, with descriptions."""

_NAME = "my_rule"
_MODEL = "automaton"
"""Model of the cases that are written without ``--from``."""


def new(file: Path, kind: str | None, rule: str | None, source: str | None = None) -> str:
    """Write a file to start from, and return a message that says what to do next.

    Parameters
    ----------
    file
        The file to write. Nothing is ever overwritten.
    kind
        The kind of a Python file, one of `KINDS`.
    rule
        The rule of a case of an automaton.
    source
        The name of an example, or of a model, whose first example is taken. Files that the example names are copied
        too, unless they ship with minga.

    Raises
    ------
    CaseError
        If the file exists or cannot be written, if its suffix is not supported, or if there is no such kind, rule or
        example.
    """
    if not file.name.isprintable():
        raise CaseError(f"{str(file)!r} contains unprintable characters", key="FILE", remedy="use letters")
    if file.suffix not in (".py", ".toml"):
        raise CaseError(
            f"{file} is neither a Python file nor a case",
            key="FILE",
            remedy=f"name {file.stem or 'my_rule'}.py for a rule of your own, {file.stem or 'case'}.toml for a case",
        )
    if source is not None:
        text, copies = _example(file, kind, rule, source)
    else:
        text, copies = (_case if file.suffix == ".toml" else _python)(file, kind, rule), {}
    try:
        for target in copies:
            if target.exists():
                raise FileExistsError(f"{target} exists")
        with file.open("x", encoding="utf-8"):
            pass  # it is ours from here on
        write_whole(file, text)
        for target, original in copies.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(original, target)
    except FileExistsError as error:
        taken = next(filter(Path.exists, copies), file)
        raise CaseError(f"{taken} exists; nothing is overwritten", key="FILE", remedy="choose another name") from error
    except OSError as error:
        raise CaseError(f"cannot write {file}: {error.strerror}", key="FILE", remedy="choose another path") from error
    except RunError:
        with contextlib.suppress(OSError):
            file.unlink()
        raise
    return f"{file} is ready to be edited. Run it with\n  minga run {shlex.quote(str(file))} --serve"


def _example(file: Path, kind: str | None, rule: str | None, source: str) -> tuple[str, dict[Path, Path]]:
    """Return the text of an example, and the files that it needs next to it, from target to original."""
    from minga.case.examples import example, examples, first_example
    from minga.case.spec import GROUP
    from minga.plugins import names

    for option, value in (("--kind", kind), ("--rule", rule)):
        if value is not None:
            raise CaseError(f"an example has its own {option[2:]}", key=option, remedy=f"leave out {option} or --from")
    models = names(GROUP)
    path = first_example(source) if source in models else example(source)
    if path is None:
        known = (*models, *examples())
        raise CaseError(
            f"there is no example or model {source!r}" if source not in models else f"{source} has no examples",
            key="--from",
            suggestion=suggest(source, known),
            remedy="see `minga list`",
        )
    if path.suffix != file.suffix:
        raise CaseError(
            f"the example {path.stem} is a {path.suffix} file",
            key="FILE",
            remedy=f"name {file.with_suffix(path.suffix)}",
        )
    text = path.read_text(encoding="utf-8")
    needed = named(tomllib.loads(text), path.parent) if path.suffix == ".toml" else []
    inside = [one for one in needed if one.is_relative_to(path.parent) and not one.is_relative_to(SHIPPED)]
    return text, {file.parent / one.relative_to(path.parent): one for one in inside}


def _python(file: Path, kind: str | None, rule: str | None) -> str:
    if rule is not None:
        raise CaseError(
            f"{file} describes a rule itself", key="--rule", remedy=f"write a case for it: minga new {file.stem}.toml"
        )
    chosen = kind or "rule"
    if chosen not in KINDS:
        raise CaseError(
            f"there is no kind {chosen!r}",
            key="--kind",
            suggestion=suggest(chosen, KINDS),
            remedy="; ".join(f"{name}: {about}" for name, about in KINDS.items()),
        )
    text = _template(f"{chosen}.py").replace(f"{_NAME}.py", _quoted(Path(file.name)))
    return re.sub(rf"\b{_NAME}\b(?!\.py)", _identifier(file.stem), text)


def _identifier(stem: str) -> str:
    """Derive the name of the function in a file from the name of the file."""
    name = re.sub(r"\W", "_", stem).strip("_").lower()
    taken = {"mg", "np", "run", "output", "start", "look", "model", "burning", "particles", "block", "cell", "near"}
    if not name or not name.isascii() or name[0].isdigit() or keyword.iskeyword(name) or name in taken:
        return _NAME
    return name


def _case(file: Path, kind: str | None, rule: str | None) -> str:
    from minga.case.spec import model_spec

    if kind is not None:
        raise CaseError("a case has no kind", key="--kind", remedy="leave it out, or name a Python file")
    new_case = model_spec(_MODEL).new_case
    assert new_case is not None
    return new_case(rule, file.parent).replace("my_case.toml", _quoted(Path(file.name)))


def _template(name: str) -> str:
    return (SHIPPED / "templates" / name).read_text(encoding="utf-8")


def _quoted(file: Path) -> str:
    """Quote a file name for a shell inside a Python string."""
    return shlex.quote(str(file)).replace("\\", "\\\\").replace('"', '\\"')
