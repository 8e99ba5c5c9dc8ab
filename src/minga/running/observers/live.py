"""A live picture of a field in a notebook, which is renewed while a run goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minga.errors import CaseError, shown
from minga.output.variables import variable_of
from minga.running.observer import Observer, Phase
from minga.running.schedule import Schedule
from minga.running.simulation import Simulation
from minga.view.colours import values_shown
from minga.view.picture import Picture
from minga.view.pictures import figure_png, frame_figure
from minga.view.python_progress import in_notebook

__all__ = ["live"]


class _Live(Observer):
    """Observer that gathers a field and shows its picture on rank 0."""

    phase = Phase.SHOW

    def __init__(self, field: str | None, seconds: float, show: Callable[[Picture], object] | None) -> None:
        self._field, self._show = field, show
        self.schedule = Schedule(seconds=seconds, start=True, end=True)
        self._wanted = False

    def start(self, simulation: Simulation) -> None:
        """Find out on rank 0 whether somebody can see pictures; collective."""
        if self._field is None:
            self._field = simulation.model.output[0]
        simulation.model.field(self._field)  # raises if there is none
        if simulation.rank == 0 and self._show is None:
            self._show = _notebook()
        self._wanted = simulation.engine.comm.bcast(self._show is not None)

    def resume(self, simulation: Simulation, state: Any) -> None:
        """Do the same as at the beginning."""
        self.start(simulation)

    def observe(self, simulation: Simulation) -> None:
        """Gather the field, and show it on rank 0."""
        if not self._wanted:
            return
        assert self._field is not None
        values = simulation.whole(self._field)
        if values is not None and self._show is not None:
            model = simulation.model
            about = variable_of(model.field(self._field), model.presentation.style(self._field))
            title = f"step {simulation.step}" + ("" if model.clock is None else f", t = {simulation.time:.6g}")
            shown = values_shown(values, about.attributes)
            figure = frame_figure(shown, self._field, about.coordinates, dict(about.attributes), title)
            self._show(Picture(figure_png(figure), f"{self._field}, {title}"))


def live(
    field: str | None = None, *, seconds: float = 1.0, show: Callable[[Picture], object] | None = None
) -> Observer:
    """Return an observer that shows a field in a notebook during a run: one picture, which is renewed.

    Elsewhere than in a notebook it does nothing, unless `show` is given. The results of a run do not depend on it.

    Parameters
    ----------
    field
        Name of the field; by default the first one that frames hold.
    seconds
        Wall time between two pictures, the first and the last one apart.
    show
        What is called on rank 0 with each picture, instead of renewing the one in the notebook.

    Returns
    -------
    Observer
        For the argument ``observers`` of `mg.run` and `mg.drive`.

    Raises
    ------
    CaseError
        If an argument is invalid.

    Examples
    --------
    >>> import minga as mg
    >>> model = mg.automaton("B3/S23", (32, 32), init={"soup": 0.3})
    >>> history = mg.run(model, steps=10, observers=[mg.live("cell")])
    """
    if show is not None and not callable(show):
        raise CaseError(f"live(show={shown(show)}): expected a function", key="observers")
    if field is not None and not isinstance(field, str):
        raise CaseError(f"live({shown(field)}): expected the name of a field", key="observers")
    return _Live(field, seconds, show)


def _notebook() -> Callable[[Picture], object] | None:
    """Return what shows pictures in the output of the present cell of a notebook; None elsewhere."""
    if not in_notebook():
        return None
    from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

    handle: Any = None

    def show(picture: Picture) -> None:
        nonlocal handle
        if handle is None:
            handle = display(picture, display_id=True)
        else:
            handle.update(picture)

    return show
