"""Simulations that ship with minga.

Each package has a `ModelSpec` (`minga.models.spec`), an entry point of the group ``minga.models``: the class of its
settings and a function that makes its Model. `minga.models.case.load_model` finds a model, or a Python file, by the
name that a case gives.
"""
