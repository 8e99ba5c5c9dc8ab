"""Simulations that ship with minga, and how a case file reaches them.

A model's package has a function

    load(section: Mapping[str, object], grid: GridSettings, directory: Path) -> Model

`section` is the case's table of the model's name ([automaton] of an automaton), `grid` its table [grid] (see
`minga.models.settings`), and paths in the section are relative to `directory`, where the case file lies. What is
wrong is a CaseError that names the key. `minga.models.case.load_model` finds the package, or the Python file, by name.
"""
