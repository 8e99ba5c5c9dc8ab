"""Validation of a case or another file against its schema: pydantic's findings as one clear error with the key."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from minga.errors import CaseError, shown, suggest

__all__ = ["dotted", "keys_of", "tables_of", "validate"]

Settings = TypeVar("Settings", bound=BaseModel)

_NUMBERS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
}
_EXPECTED = {
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a word in quotes",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}


def validate(
    kind: type[Settings], data: Mapping[str, object], key: str = "", thing: str = "a case", *, keywords: bool = False
) -> Settings:
    """Return settings that were checked against their schema.

    Types must match: ``"10"`` and ``10.0`` are not whole numbers; lists serve as tuples, and words as paths.

    Parameters
    ----------
    kind
        The class of the settings, a pydantic model.
    data
        The data.
    key
        The name of the table, for messages.
    thing
        The document that the data comes from, for messages.
    keywords
        True if the entries are keyword arguments, so that messages write them as in Python.

    Returns
    -------
    object
        An instance of ``kind``.

    Raises
    ------
    CaseError
        For the first invalid entry: its dotted key, what was expected and what was found, and for an unknown key the
        one that was probably meant.
    """
    try:
        # In JSON mode, pydantic is strict in the way that a case file needs; in Python mode, it would refuse lists.
        return kind.model_validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as error:
        raise _explain(kind, error, data, key, thing, keywords=keywords) from None


def tables_of(kind: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return the schema of each table within a schema, by name."""
    found = {name: _table(field.annotation) for name, field in kind.model_fields.items()}
    return {name: table for name, table in found.items() if table is not None}


def keys_of(kind: type[BaseModel]) -> list[str]:
    """Return the keys of a table as people write them, without the former names of others."""
    return [field.alias or name for name, field in kind.model_fields.items() if not _extra(field, "renamed")]


def dotted(*parts: object) -> str:
    """Join parts to a dotted key; empty parts are left out, numbers are list entries: ``grid.shape[0]``."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part != "":
            text += f".{part}" if text else str(part)
    return text


def _explain(
    kind: type[BaseModel], error: ValidationError, data: Mapping[str, object], key: str, thing: str, *, keywords: bool
) -> CaseError:
    """Return the error for the first fault, with the name of the list entry that it lies in.

    `keywords` tells whether the entries are keyword arguments.
    """
    # Unknown keys come first: a misspelt key is also a missing one, and its own name is the better hint.
    faults = sorted(error.errors(include_url=False), key=lambda fault: fault["type"] != "extra_forbidden")
    faults = [fault for fault in faults if not _is_of_a_table_within(fault, faults)]
    fault = faults[0]
    place = _place(fault)
    name = dotted(key, *place)
    entry = _entry(kind, place, data)
    if fault["type"] == "extra_forbidden":
        schema = _schema(kind, place[:-1])
        known = keys_of(schema) if schema else []
        kinds = getattr(schema, "kinds", ())  # of tables each of which is of one of several kinds
        if kinds and set(kinds).isdisjoint(_value_at(data, place[:-1])):
            known = kinds
        table = dotted(key, *place[:-1])
        among = f"[{table}] has {'one of ' if known is kinds else ''}" if table else f"{thing} has "
        return CaseError(
            f"{entry}unknown key {name!r}",
            key=name,
            suggestion=suggest(str(place[-1]), known),
            remedy=f"remove or rename it; {among}{', '.join(sorted(known))}",
        )
    if fault["type"] == "missing":
        return CaseError(f"{entry}{name!r} is missing", key=name, remedy=_addition(kind, place, name, thing, keywords))
    # Each branch of a union has its own fault at the same place.
    limits = _limits(kind, place)
    expected = " or ".join(
        _without_repetition([_expected(other, limits) for other in faults if _place(other) == place])
    )
    if keywords:
        expected = expected.replace("true or false", "True or False")
        message = f"{name}={shown(_value_at(data, place))}: expected {expected}"
    else:
        message = f"{entry}{name}: expected {expected}, found {fault['input']!r}"
    return CaseError(message, key=name, remedy=_description(kind, place))


def _entry(kind: type[BaseModel], place: tuple[int | str, ...], data: object) -> str:
    """Return the name of the list entry that a place lies in, such as "layer 'Mult': ", where the schema wants it.

    Fields whose entries are to be called by name say what these are, in ``json_schema_extra={"entry": "layer"}``.
    """
    for depth, part in enumerate(place):
        entries = _field(kind, place[:depth]) if isinstance(part, int) else None
        if entries is not None and (word := _extra(entries, "entry")):
            found = _value_at(data, place[: depth + 1])
            name = found.get("name") if isinstance(found, Mapping) else None
            return f"{word} {name if isinstance(name, str) and name else f'{word} {int(part) + 1}'!r}: "
    return ""


def _extra(field: FieldInfo, name: str) -> str:
    """Return what a field says beyond its schema, "" for nothing."""
    extra = field.json_schema_extra
    return str(extra.get(name, "")) if isinstance(extra, dict) else ""


_LIMITS = {"gt": "above", "ge": "of at least", "lt": "below", "le": "of at most"}


def _is_of_a_table_within(fault: Any, faults: Sequence[Any]) -> bool:
    """Return True if another fault explains what is wrong within a table or list given for a union."""
    place = _place(fault)
    return isinstance(fault["input"], dict | list) and any(
        len(inner := _place(other)) > len(place) and inner[: len(place)] == place for other in faults
    )


def _addition(kind: type[BaseModel], place: tuple[int | str, ...], name: str, thing: str, keyword: bool) -> str | None:
    """Return the remedy for a missing entry."""
    description = _description(kind, place)
    if keyword:
        return f"give {name}=..." + (f", {description}" if description else "")
    if description is None or thing != "a case" or any(isinstance(part, int) for part in place):
        return description
    return f"give it in the case or with --set {name}=...: {description}"


def _value_at(data: Any, place: tuple[int | str, ...]) -> Any:
    """Return the value at a place within nested tables and lists."""
    for part in place:
        data = data[part]
    return data


@dataclass(frozen=True, slots=True)
class _Limits:
    """Limits of a number according to the schema, without ambiguous ones."""

    known: Mapping[str, Any] = field(default_factory=dict)
    unit: str = ""
    noun: str = "a number"


def _limits(kind: type[BaseModel], place: tuple[object, ...]) -> _Limits:
    """Return the limits of a number, its unit and the noun for it."""
    entry = place
    while entry and isinstance(entry[-1], int):
        entry = entry[:-1]
    entry_field = _field(kind, entry)
    if entry_field is None:
        return _Limits()
    found: dict[str, set[Any]] = {}
    for item in (*entry_field.metadata, *_metadata(entry_field.annotation)):
        for name in _LIMITS:
            if (value := getattr(item, name, None)) is not None:
                found.setdefault(name, set()).add(value)
    unit = _extra(entry_field, "unit")
    types_of_numbers = set(_types(entry_field.annotation)) & {int, float}
    return _Limits(
        {name: values.pop() for name, values in found.items() if len(values) == 1},
        "" if unit == "1" else unit,
        "a whole number" if types_of_numbers == {int} else "a number",
    )


def _types(annotation: Any) -> Iterator[type]:
    """Yield the types anywhere within an annotation."""
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    elif get_origin(annotation) is not Literal:
        for inner in get_args(annotation):
            yield from _types(inner)


def _metadata(annotation: Any) -> Iterator[Any]:
    """Yield the metadata anywhere within an annotation, but not within tables."""
    if get_origin(annotation) is Annotated:
        for item in get_args(annotation)[1:]:
            yield from getattr(item, "metadata", [item])
    for inner in get_args(annotation):
        yield from _metadata(inner)


def _number(limits: _Limits, broken: tuple[str, Any] | None = None) -> str:
    """Return the noun phrase for a number within limits; `broken` is the limit that a value violates."""
    bounds = [(name, limits.known[name]) for name in _LIMITS if name in limits.known]
    sides = [name in ("gt", "ge") for name, _ in bounds]
    if broken is not None and (broken not in bounds or len(set(sides)) < len(sides)):
        bounds = [broken]
    text = " and ".join(f"{_LIMITS[name]} {value}" for name, value in bounds).replace("and of at", "and at")
    return " ".join(filter(None, (limits.noun, text, f"({limits.unit})" if limits.unit else "")))


def _expected(fault: Any, known: _Limits) -> str:
    """Return the noun phrase for the expected value."""
    kind, limits = fault["type"], fault.get("ctx", {})
    if kind in _NUMBERS:
        return _number(replace(known, noun=_NUMBERS[kind]))
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    for name in _LIMITS:
        if kind.startswith(("greater_than", "less_than")) and name in limits:
            return _number(known, (name, limits[name]))
    if kind == "multiple_of":
        return f"a multiple of {limits['multiple_of']}"
    if kind == "literal_error":
        return f"one of {limits['expected']}"
    if kind == "too_short":
        return f"at least {_entries(limits['min_length'])}"
    if kind == "too_long":
        return f"at most {_entries(limits['max_length'])}"
    if kind == "string_pattern_mismatch":
        return "another name"
    if kind == "value_error":
        return str(limits.get("error", fault["msg"]))
    return str(fault["msg"])


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _without_repetition(expected: list[str]) -> list[str]:
    """Return the expectations of a union's branches, once each; numbers include integers."""
    general = {word.replace("a whole number", "a number") for word in expected if word.startswith("a number")}
    return [
        word
        for word in dict.fromkeys(expected)
        if not word.startswith("a whole number") or word.replace("a whole number", "a number") not in general
    ]


def _place(fault: Any) -> tuple[int | str, ...]:
    """Return the location of a fault: keys and list entries."""
    *tables, last = fault["loc"] or ("",)
    named = fault["type"] == "extra_forbidden"  # a person wrote the last part, which may look like a tag
    return tuple(part for part in tables if not _is_union_tag(part)) + (
        (last,) if named or not _is_union_tag(last) else ()
    )


def _is_union_tag(part: object) -> bool:
    """Return True if part of a location is pydantic's name for a branch of a union, such as ``tuple[int, ...]``."""
    return isinstance(part, str) and (
        any(c in part for c in "[(")
        or part.removeprefix("constrained-") in ("int", "float", "str", "bool")
        or part.endswith(("Settings", "File"))  # the class of a table
    )


def _schema(kind: type[BaseModel], place: tuple[object, ...]) -> type[BaseModel] | None:
    """Return the schema of the table at a place within another table, also in lists and tables of tables."""
    annotation: Any = kind
    for part in place:
        table = _table(annotation)
        if table is None:
            *_, annotation = [inner for inner in get_args(_unwrapped(annotation)) if inner is not Ellipsis] or [None]
            continue
        field = next((f for name, f in table.model_fields.items() if part in (name, f.alias)), None)
        if field is None:
            return None
        annotation = field.annotation
    return _table(annotation)


def _table(annotation: Any) -> type[BaseModel] | None:
    """Return the schema that an annotation is, or that is among its choices; otherwise None."""
    annotation = _unwrapped(annotation)
    if get_origin(annotation) in (Union, types.UnionType):
        tables = [table for choice in get_args(annotation) if (table := _table(choice)) is not None]
        return tables[0] if len(tables) == 1 else None
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _unwrapped(annotation: Any) -> Any:
    """Return an annotation without Annotated and without None as another choice."""
    if get_origin(annotation) is Annotated:
        return _unwrapped(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        choices = [choice for choice in get_args(annotation) if choice is not type(None)]
        return _unwrapped(choices[0]) if len(choices) == 1 else annotation
    return annotation


def _description(kind: type[BaseModel], place: tuple[object, ...]) -> str | None:
    """Return the schema's description of the field at a place, which serves as the remedy."""
    while place and isinstance(place[-1], int):
        place = place[:-1]  # the description of a list is used for its entries
    field = _field(kind, place)
    return field.description if field else None


def _field(kind: type[BaseModel], place: tuple[object, ...]) -> FieldInfo | None:
    """Return the schema's field at a place, or None."""
    schema = _schema(kind, place[:-1]) if place else None
    fields = schema.model_fields.items() if schema else ()
    return next((field for name, field in fields if place[-1] in (name, field.alias)), None)
