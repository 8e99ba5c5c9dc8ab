"""Conversion of the program of a case into its parts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal

from minga.errors import CaseError, shown
from minga.models.electrodeposition.protocols.segments import (
    LIMITS,
    STRONGEST,
    Limit,
    Part,
    Repeat,
    Segment,
    segments_of,
)
from minga.models.electrodeposition.protocols.settings import KINDS, FrequencySettings, PartSettings
from minga.models.electrodeposition.protocols.tables import table_of
from minga.models.electrodeposition.quantities import Kind, quantity

__all__ = ["parts_of"]

Control = Literal["voltage", "current"]

MOST: Final = 200
"""Largest number of segments in a program, not counting repetitions."""
_KIND: Final[Mapping[Control, Kind]] = {"voltage": "potential", "current": "current"}
_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "hold": (), "rest": (), "ramp": (), "cycle": ("rate",), "pulse": ("on", "off"), "sine": ("amplitude", "frequency"),
    "impedance": ("amplitude", "frequencies"),
    "repeat": ("of",), "file": (),
}  # fmt: skip
"""Entries that a part of each kind must have."""
_ALLOWS: Final[Mapping[str, tuple[str, ...]]] = {
    "hold": ("time", "until"), "rest": ("until",), "ramp": ("time", "rate", "until"),
    "cycle": ("rate", "times", "until"), "pulse": ("on", "off", "base", "times", "until"),
    "sine": ("amplitude", "frequency", "points", "times"),
    "impedance": ("amplitude", "frequencies", "points", "times"), "repeat": ("of",), "file": (),
}  # fmt: skip
"""Entries that it may have."""
_RATES: Final[Mapping[Control, str]] = {"voltage": "50 mV/s", "current": "5 mA/cm2/s"}
"""Examples of rates."""
_FORM: Final = (
    'write {hold = "5 mA/cm2", time = "10 s"}, {rest = "5 s"}, {ramp = ["0 V", "0.3 V"], rate = "50 mV/s"}, '
    '{cycle = ["0 V", "0.3 V", "0 V"], rate = "50 mV/s"}, {pulse = "50 mA/cm2", on = "1 ms", off = "9 ms", times = '
    '100}, {sine = "0.1 V", amplitude = "5 mV", frequency = "10 Hz"}, {impedance = "0 V", amplitude = "1 mV", '
    'frequencies = {from = "1 kHz", to = "1 Hz"}}, {file = "profile.csv"} or {repeat = 3, of = [...]}'
)


def parts_of(
    given: Sequence[PartSettings], key: str = "electrodeposition.program", directory: Path = Path()
) -> tuple[Part, ...]:
    """Return the parts of a program.

    Parameters
    ----------
    given
        The parts as the case has them.
    key
        The entry of the case, for error messages.
    directory
        Directory that files are relative to.

    Raises
    ------
    CaseError
        If a part cannot be carried out.
    """
    found = tuple(_part(item, f"{key}[{number}]", directory) for number, item in enumerate(given))
    count = sum(1 for _ in segments_of(found))
    if count > MOST:
        raise CaseError(
            f"the program has {count} segments; at most {MOST} are supported, not counting repetitions",
            key=key,
            remedy="write what recurs as {repeat = 10, of = [...]}",
        )
    return found


def _part(item: PartSettings, key: str, directory: Path) -> Part:
    kinds = [name for name in KINDS if getattr(item, name) is not None]
    if len(kinds) != 1:
        raise CaseError(
            f"a part of a program has exactly one of {', '.join(KINDS)}; found {', '.join(kinds) or 'none'}",
            key=key,
            remedy=_FORM,
        )
    (kind,) = kinds
    for name in _NEEDS[kind]:
        if getattr(item, name) is None:
            raise CaseError(f"{name!r} is missing beside {kind}", key=f"{key}.{name}", remedy=_FORM)
    for name in item.model_fields_set - {kind}:
        if name not in _ALLOWS[kind]:
            raise CaseError(f"{name!r} does not apply to {kind}", key=f"{key}.{name}", remedy="leave it out")
    if item.file is not None:
        return table_of(directory / item.file, f"{key}.file", MOST)
    if item.repeat is not None:
        assert item.of is not None
        return Repeat(item.repeat, parts_of(item.of, f"{key}.of", directory))
    return _READERS[kind](item, key)


def _hold(item: PartSettings, key: str) -> Part:
    control, level = _level(item.hold, f"{key}.hold")
    return _segment(item, key, control, level, duration=math.inf if item.time is None else item.time)


def _rest(item: PartSettings, key: str) -> Part:
    assert item.rest is not None
    return _segment(item, key, "current", 0.0, duration=item.rest)


def _ramp(item: PartSettings, key: str) -> Part:
    assert item.ramp is not None
    if (item.time is None) == (item.rate is None):
        raise CaseError(
            "a ramp has either a time or a rate", key=key, remedy='write rate = "50 mV/s", or time = "10 s"'
        )
    control, levels = _levels(item.ramp, f"{key}.ramp")
    return _to(item, key, control, levels[0], levels[1], item.time)


def _cycle(item: PartSettings, key: str) -> Part:
    assert item.cycle is not None
    control, levels = _levels(item.cycle, f"{key}.cycle")
    if levels[0] != levels[-1] and (item.times or 1) > 1:
        raise CaseError(
            "cycles that are repeated end where they began",
            key=f"{key}.cycle",
            remedy="write the first level again at the end",
        )
    ramps = [_to(item, key, control, a, b, None) for a, b in itertools.pairwise(levels)]
    return Repeat(item.times or 1, tuple(ramps))


def _to(item: PartSettings, key: str, control: Control, low: float, high: float, time: float | None) -> Segment:
    """Return a ramp from `low` to `high` in a time, or at the rate that the part has."""
    if low == high:
        raise CaseError(f"a ramp from {low:g} to the same level", key=key, remedy="write hold instead")
    if time is None:
        rate = _rate(item.rate, control, f"{key}.rate")
        time = abs(high - low) / rate
    return _segment(item, key, control, low, slope=(high - low) / time, duration=time)


def _pulse(item: PartSettings, key: str) -> Part:
    assert item.on is not None
    assert item.off is not None
    control, level = _level(item.pulse, f"{key}.pulse")
    nothing: tuple[Control, float] = "current", 0.0
    other, base = nothing if item.base is None else _level(item.base, f"{key}.base")
    pair = (
        _segment(item, key, control, level, duration=item.on),
        _segment(item, key, other, base, duration=item.off, limited=False),
    )
    return Repeat(item.times or 1, pair)


def _sine(item: PartSettings, key: str) -> Part:
    assert item.frequency is not None
    return _swing(item, key, "sine", item.frequency)


def _impedance(item: PartSettings, key: str) -> Part:
    given = item.frequencies
    assert given is not None
    frequencies = _decades(given) if isinstance(given, FrequencySettings) else given
    return Repeat(1, tuple(_swing(item, key, "impedance", frequency) for frequency in frequencies))


def _decades(given: FrequencySettings) -> list[float]:
    """Return frequencies from the first to the last, the ratio of neighbours rounded to fit."""
    low, high = Decimal(given.first), Decimal(given.to)
    decades = (high / low).log10()
    count = max(1, round(abs(decades) * given.per_decade))
    found = [float(low * Decimal(10) ** (decades * n / count)) for n in range(count + 1)]
    return [given.first, *found[1:-1], given.to] if given.first != given.to else [given.first]


def _swing(item: PartSettings, key: str, name: str, frequency: float) -> Segment:
    control, level = _level(getattr(item, name), f"{key}.{name}")
    other, amplitude = _level(item.amplitude, f"{key}.amplitude")
    if other != control:
        raise CaseError(
            f"a {control} that swings by a {other}",
            key=f"{key}.amplitude",
            remedy="give both as voltages or as currents",
        )
    if amplitude == 0.0:
        raise CaseError("an amplitude of 0", key=f"{key}.amplitude", remedy='give a small one, such as "1 mV"')
    if name == "impedance" and item.times == 1:
        raise CaseError(
            "an impedance of the first period, which contains the response to the beginning of the sine",
            key=f"{key}.times",
            remedy="give 2 or more, or leave it out: the last of 3 periods counts by default",
        )
    return Segment(
        control, level, amplitude=amplitude, frequency=frequency, duration=(item.times or 3) / frequency,
        points=item.points, measured=name == "impedance",
    )  # fmt: skip


_READERS: Final[Mapping[str, Callable[[PartSettings, str], Part]]] = {
    "hold": _hold, "rest": _rest, "ramp": _ramp, "cycle": _cycle, "pulse": _pulse, "sine": _sine,
    "impedance": _impedance,
}  # fmt: skip


def _segment(
    item: PartSettings, key: str, control: Control, level: float, *, slope: float = 0.0, duration: float,
    limited: bool = True,
) -> Segment:  # fmt: skip
    until: dict[Limit, float] = {}
    for name in LIMITS if limited else ():
        value = getattr(item.until, name)
        if value is None:
            continue
        if name == control:
            raise CaseError(
                f"the {name} is given, so that a limit of it ends nothing",
                key=f"{key}.until.{name}",
                remedy="give a time, or the limit of another quantity",
            )
        until[name] = value
    if math.isinf(duration) and not until:
        raise CaseError(
            "nothing ends this part of the program",
            key=key,
            remedy='give it a time = "10 s", or a limit: until = {charge = "1 C/cm2"}',
        )
    return Segment(control, level, slope, duration=duration, until=until)


def _levels(given: Sequence[object], key: str) -> tuple[Control, list[float]]:
    found = [_level(item, f"{key}[{number}]") for number, item in enumerate(given)]
    controls = {control for control, _ in found}
    if len(controls) > 1:
        raise CaseError("a current and a voltage in one ramp", key=key, remedy="give all levels of the same kind")
    return found[0][0], [level for _, level in found]


def _level(value: object, key: str) -> tuple[Control, float]:
    """Return a level and what it is a level of: a text with a unit, or a table with one entry."""
    control, level = _level_of(value, key)
    if abs(level) > STRONGEST:
        raise CaseError(
            f"a {control} of {level:g}, beyond {STRONGEST:g}",
            key=key,
            remedy="check the unit: plain numbers are in A/m2 or V",
        )
    return control, level


def _level_of(value: object, key: str) -> tuple[Control, float]:
    if isinstance(value, Mapping) and len(value) == 1 and (name := next(iter(value))) in _KIND:
        return name, _read(value[name], _KIND[name], f"{key}.{name}")
    if isinstance(value, str):
        for control, kind in _KIND.items():
            try:
                return control, quantity(value, kind)
            except ValueError:
                continue
    raise CaseError(
        f"expected a current or a voltage, found {shown(value)}",
        key=key,
        remedy='write "5 mA/cm2" or "0.2 V" with the unit, or {current = 50.0} or {voltage = 0.2}',
    )


def _rate(value: object, control: Control, key: str) -> float:
    """Return a rate, such as that of "50 mV/s"."""
    given = value
    if isinstance(value, str):
        given, slash, time = (part.strip() for part in value.rpartition("/"))
        if not slash or time != "s" or (control == "current" and "/" not in given):
            raise CaseError(
                f"expected a {control} per second, found {shown(value)}",
                key=key,
                remedy=f'write rate = "{_RATES[control]}"; the rate ends with /s',
            )
    rate = _read(given, _KIND[control], key)
    if rate <= 0:
        raise CaseError(f"a rate of {rate:g}", key=key, remedy="give its size, above 0; the levels give its direction")
    return rate


def _read(value: object, kind: Kind, key: str) -> float:
    try:
        return quantity(value, kind)
    except ValueError as error:
        raise CaseError(f"expected {error}, found {shown(value)}", key=key, remedy=_FORM) from error
