"""Names that results give to their own axes and coordinates: no axis, field or observable can have one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["OBSERVED", "OBSERVED_TIMES", "OF_RESULTS", "RECEIVER", "RECEIVER_TIMES", "STEP", "TIME"]

TIME: Final = "time"
"""Dimension of frames; its coordinate is the time of the model, or the steps if the model has none."""
STEP: Final = "step"
"""Coordinate of frames that counts steps."""
OBSERVED: Final = "observed"
"""Dimension of observables over time."""
OBSERVED_TIMES: Final = "time_observed"
"""Coordinate of observables: the times of the model."""
RECEIVER: Final = "receiver"
"""Dimension of samples at points."""
RECEIVER_TIMES: Final = "receiver_time"
"""Dimension of the times of samples at points."""
OF_RESULTS: Final[Mapping[str, str]] = {
    TIME: "the time axis",
    STEP: "the count of steps",
    OBSERVED: "the axis of observables",
    OBSERVED_TIMES: "the times of observables",
    RECEIVER: "the axis of receivers",
    RECEIVER_TIMES: "the times of receivers",
}
"""The meaning of each of these names in results."""
