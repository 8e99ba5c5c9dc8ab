"""Tables of observables, such as current over voltage: a row for each step, in the result and as ``NAME.csv``.

If observables in a table are lists, such as spectra, a step has a row for each entry; numbers are repeated.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

from minga.engine.model import Model
from minga.output.directory import RunDirectory, write_whole
from minga.output.series import Series

__all__ = ["tables_of", "write_tables"]

Tables = Mapping[str, list[dict[str, Any]]]


def tables_of(model: Model, series: Series) -> dict[str, list[dict[str, Any]]]:
    """Return the tables of a model from its observables: rows of columns by name, beginning after the first step.

    Numbers that are not finite are None.
    """
    seen = series.as_dict()
    rows = [k for k, step in enumerate(series.steps) if step > 0]
    return {
        name: [row for k in rows for row in _rows({column: seen[column][k] for column in columns if column in seen})]
        for name, columns in model.tables.items()
    }


def _rows(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a step: one, or one for each entry of lists, the longest of which determines the number."""
    lists = [len(value) for value in values.values() if isinstance(value, list)]
    if not lists:
        return [dict(values)]
    return [
        {
            name: (value[k] if k < len(value) else None) if isinstance(value, list) else value
            for name, value in values.items()
        }
        for k in range(max(lists))
    ]


def write_tables(directory: RunDirectory, model: Model, tables: Tables) -> None:
    """Write each table, beginning with a line of column names.

    Descriptions and units of the columns go into NAME.csv-metadata.json, in the format of "CSV on the Web" (W3C,
    tabular metadata).

    Raises
    ------
    RunError
        If the disk refuses.
    """
    for name, rows in tables.items():
        text = io.StringIO()
        lines = csv.DictWriter(text, model.tables[name], lineterminator="\n")
        lines.writeheader()
        lines.writerows(rows)
        path = directory.table(name)
        write_whole(path, text.getvalue())
        write_whole(path.with_name(f"{path.name}-metadata.json"), json.dumps(_metadata(model, name, path.name)) + "\n")


def _metadata(model: Model, table: str, file: str) -> dict[str, Any]:
    """Return the description of the columns of a table."""
    known = model.quantities
    columns = [
        {"name": name, "titles": name, "datatype": "number"}
        | ({"dc:description": known[name][1], "schema:unitText": known[name][0]} if name in known else {})
        for name in model.tables[table]
    ]
    return {"@context": "http://www.w3.org/ns/csvw", "url": file, "tableSchema": {"columns": columns}}
