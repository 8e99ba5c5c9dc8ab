"""Pages of the reference, made from the package itself: names, commands, entries of cases, observables.

`pages()` returns their texts; `scripts/site.py` puts them into the site. Nothing here needs Sphinx.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final, get_origin

import typer

from minga.api import PUBLIC
from minga.case.examples import examples
from minga.case.settings import GridSettings
from minga.case.spec import GROUP, model_spec
from minga.cli.case import read_case
from minga.cli.flags import help_text
from minga.cli.main import app
from minga.models.waves.survey_settings import SurveySettings
from minga.options import RunOptions
from minga.plugins import names

Schema = Mapping[str, Any]

TABLES: Final = {"automaton": "_WORDS", "electrodeposition": "_ALL", "photodiode": "_ALL"}
"""The table of all observables in the module `units` of models that have one."""


def pages() -> dict[str, str]:
    """Return the texts of all pages by their file names."""
    found = {f"{module}.md": _module_page(module) for module in PUBLIC}
    found["commands.md"] = _commands_page()
    found["case-entries.md"] = _cases_page()
    found["observables.md"] = _observables_page()
    found["index.md"] = _index(list(found))
    return found


def public_names(module: str) -> list[str]:
    """Return the public names of a module."""
    return list(import_module(module).__all__)


def commands() -> dict[str, Any]:
    """Return each command, and each command of a group, by its full name, such as `minga lab run`."""
    root = typer.main.get_command(app)
    context: Any = root.make_context("minga", [], resilient_parsing=True)
    return dict(_commands_of(root, context, "minga"))


def entries(model: str | None = None) -> dict[str, tuple[str, str, str]]:
    """Return values, default and meaning of each entry of a case by its dotted key.

    Parameters
    ----------
    model
        The model whose table is described, or "survey"; by default the tables that all models have.
    """
    if model == "survey":
        return _entries_of(SurveySettings, model)
    if model is not None:
        return _entries_of(model_spec(model).settings, model)
    found = {"model": ("text", "", "name of an installed model, or a Python file that defines one")}
    found |= _entries_of(GridSettings, "grid")
    return found | _entries_of(RunOptions, "")


def observables() -> dict[str, dict[str, tuple[str, str]]]:
    """Return unit and meaning of each observable by model; `*` stands for the rest of a name."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for model in names(GROUP):
        if model in TABLES:
            table = getattr(import_module(f"minga.models.{model}.units"), TABLES[model])
            found[model] = {n: ("1", entry) if isinstance(entry, str) else entry for n, entry in table.items()}
        else:
            found[model] = _of_examples(model)
    return found


def _of_examples(model: str) -> dict[str, tuple[str, str]]:
    """Return the observables of a model's examples; names of fields become `*`."""
    found: dict[str, tuple[str, str]] = {}
    for example in map(str, model_spec(model).examples):
        if example not in examples():
            continue
        case = read_case(example).model
        fields = [f.name for f in case.fields]
        for name in case.observables:
            unit, meaning = case.quantities.get(name, ("1", ""))
            field = max((f for f in fields if name.endswith(f"_{f}")), key=len, default="")
            key = f"{name.removesuffix(field)}*" if field else name
            found[key] = unit, re.sub(rf"\b{re.escape(field)}\b", "*", meaning) if field else meaning
    return found


def _module_page(module: str) -> str:
    """Return the page of a module: each public name with its docstring, which Sphinx reads."""
    loaded = import_module(module)
    lines = [f"# {module}", "", _first_paragraph(loaded.__doc__ or ""), "", "```{eval-rst}"]
    for name in sorted(public_names(module), key=lambda n: (n.casefold(), n)):
        item = getattr(loaded, name)
        if inspect.ismodule(item):
            continue  # has a page of its own
        if inspect.isclass(item) or inspect.isroutine(item):
            kind, first = "class" if inspect.isclass(item) else "function", _first_place(item)
            if first == f"{module}.{name}":
                lines += [f".. auto{kind}:: {first}"]
            else:
                lines += [f".. py:{kind}:: {module}.{name}", "   :no-index:", "", f"   See :py:obj:`{first}`."]
        else:
            lines += [f".. py:data:: {module}.{name}", "", f"   {_constant(item)}"]
        lines += [""]
    return "\n".join([*lines, "```", ""])


def _first_place(item: Any) -> str:
    """Return the name under which an object is described; at its other places the page refers to this one."""
    return next(f"{m}.{n}" for m in PUBLIC for n in public_names(m) if getattr(import_module(m), n) is item)


def _constant(item: Any) -> str:
    """Return a line on a constant."""
    if isinstance(item, Mapping):
        return f"By name: {', '.join(f'`{key}`' for key in item)}."
    if isinstance(item, tuple | list):
        return f"Of {', '.join(f'`{value}`' for value in item)}."
    if get_origin(item) is not None:
        return "A type for annotations of settings."
    doc = _first_paragraph(type(item).__doc__ or "") if type(item).__module__.startswith("minga") else ""
    return f"{doc} `{item!r}`" if len(repr(item)) < 80 else doc or f"A `{type(item).__name__}`."


def _first_paragraph(text: str) -> str:
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


def _commands_of(group: Any, context: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        yield f"{path} {name}", command
        if hasattr(command, "list_commands"):
            yield from _commands_of(command, context, f"{path} {name}")


def _commands_page() -> str:
    lines = ["# Commands", "", "Every command prints this help with `--help`.", ""]
    for name, command in commands().items():
        lines += [f"{'##' if name.count(' ') == 1 else '###'} {name}", "", _text(command.help or ""), ""]
        rows = [_parameter(p) for p in command.params if not getattr(p, "hidden", False)]
        if rows:
            lines += ["| argument or option | default | meaning |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _parameter(parameter: Any) -> str:
    """Return the row of an argument or option."""
    argument = parameter.param_type_name == "argument"
    spelled = parameter.name.upper() if argument else ", ".join([*parameter.opts, *parameter.secondary_opts])
    plain = parameter.default not in (None, False, (), []) and not callable(parameter.default)
    default = "required" if parameter.required else f"`{parameter.default}`" if plain else ""
    return _row(f"`{spelled}`", default, help_text(parameter))


def _entries_of(kind: Any, prefix: str) -> dict[str, tuple[str, str, str]]:
    schema = kind.model_json_schema()
    return dict(_walk(schema, schema, prefix, _attributes(kind.__doc__ or "")))


def _walk(
    root: Schema, table: Schema, prefix: str, meanings: Mapping[str, str], outer: tuple[str, ...] = ()
) -> Iterator[tuple[str, Any]]:
    """Yield the entries of a table and of the tables within it; `outer` names the tables around it."""
    for name, entry in table.get("properties", {}).items():
        key = f"{prefix}.{name}".lstrip(".")
        inner = list(dict.fromkeys(_tables(root, entry)))
        about = entry.get("description") or meanings.get(name, "")
        if inner and not about:
            about = _first_paragraph(root["$defs"][inner[0]].get("description", ""))
        if prefix or not inner:
            yield key, (", ".join(dict.fromkeys(_kinds(root, entry))), _default(entry), about)
        for reference in inner:
            if reference in outer:  # such as the segments within a repetition of segments
                continue
            within = root["$defs"][reference]
            lists = "[]" if entry.get("type") == "array" or _listed(entry) else ""
            inside = _attributes(within.get("description", ""))
            yield from _walk(root, within, key + lists, inside, (*outer, reference))


def _choices(entry: Schema) -> list[Schema]:
    return list(entry.get("anyOf") or entry.get("oneOf") or [entry])


def _listed(entry: Schema) -> bool:
    return any(choice.get("type") == "array" and "$ref" in choice.get("items", {}) for choice in _choices(entry))


def _tables(root: Schema, entry: Schema) -> Iterator[str]:
    """Yield the names of the tables that an entry may be, or hold in a list or by name."""
    for choice in _choices(entry):
        if choice is not entry:
            yield from _tables(root, choice)
        elif "$ref" in choice:
            name = choice["$ref"].rpartition("/")[2]
            if "properties" in root["$defs"][name]:
                yield name
        else:
            inner = [choice.get("items"), choice.get("additionalProperties"), *choice.get("prefixItems", [])]
            for item in inner:
                if isinstance(item, dict):
                    yield from _tables(root, item)


_KINDS: Final = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}


def _kinds(root: Schema, entry: Schema) -> Iterator[str]:
    """Yield the kinds of values that an entry may have."""
    for choice in _choices(entry):
        if choice is not entry:
            yield from _kinds(root, choice)
        elif "$ref" in choice:
            yield "table"
        elif "enum" in choice or "const" in choice:
            yield from (
                f'`"{v}"`' if isinstance(v, str) else f"`{v}`" for v in choice.get("enum", [choice.get("const")])
            )
        elif choice.get("type") == "array":
            yield "list"
        elif choice.get("type") == "object":
            yield "table by name"
        elif choice.get("type") in _KINDS:
            yield _KINDS[choice["type"]]


def _default(entry: Schema) -> str:
    value = entry.get("default")
    if value is None or value == [] or value == {} or isinstance(value, dict):
        return ""
    return f'`"{value}"`' if isinstance(value, str) else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _attributes(doc: str) -> dict[str, str]:
    """Return the meanings of the attributes or parameters of a docstring by name."""
    parts = re.split(r"^([A-Z][a-z]+)\n-{3,}$", inspect.cleandoc(doc), flags=re.MULTILINE)
    found: dict[str, str] = {}
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        if heading in ("Attributes", "Parameters"):
            for match in re.finditer(r"^(\w[^\n]*)\n((?:[ \t]+[^\n]*\n?|\n(?=[ \t]))+)", text, re.MULTILINE):
                meaning = " ".join(match[2].split())
                found |= {name.strip(): meaning for name in match[1].partition(" : ")[0].split(",")}
    return found


def _cases_page() -> str:
    lines = [
        "# Entries of cases\n",
        "Each key is written in the [file of a case](../cases.md), or given as `--set KEY=VALUE`;",
        "`[]` stands for each table of a list.\n",
    ]
    about = {name: model_spec(name).description for name in names(GROUP)}
    for model in (None, *about, "survey"):
        lines += [f"## {'Every case' if model is None else model}", ""]
        text = "the table of `minga survey`" if model == "survey" else about.get(model or "", "tables of all models")
        lines += [f"{text[0].upper()}{text[1:]}.", ""]
        lines += ["| entry | values | default | meaning |", "|---|---|---|---|"]
        lines += [_row(f"`{key}`", *rest) for key, rest in entries(model).items()]
        lines += [""]
    return "\n".join(lines)


def _observables_page() -> str:
    lines = [
        "# Observables\n",
        "Numbers that models report of their state, in the dataset of `mg.run`, in `result.json` and in reports.",
        "`*` stands for a name of the case: of an ion, a layer or a field. Models in Python name their own.\n",
    ]
    for model, found in observables().items():
        lines += [f"## {model}", "", "| observable | unit | meaning |", "|---|---|---|"]
        lines += [_row(f"`{name}`", unit, meaning.replace("{}", "*")) for name, (unit, meaning) in found.items()]
        lines += [""]
    return "\n".join(lines)


def _row(*cells: str) -> str:
    return "| " + " | ".join(" ".join(_text(cell).split()).replace("|", "\\|") for cell in cells) + " |"


def _text(text: str) -> str:
    """Return text in which Markdown finds no markup that is not meant: pairs of backticks stay as they are."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([*_<\[\]])", r"\\\1", p) for p in parts)


def _index(found: list[str]) -> str:
    modules = [name for name in found if name.startswith("minga")]
    lines = ["# Reference", "", "Made from the package: nothing public is missing.", ""]
    lines += [f"- [{title}]({file})" for title, file in (
        ("Commands", "commands.md"), ("Entries of cases", "case-entries.md"), ("Observables", "observables.md"),
    )]  # fmt: skip
    lines += ["", "## Modules", "", *(f"- [`{name[:-3]}`]({name})" for name in modules), ""]
    return "\n".join(lines)
