"""The loss of a host or of ranks: what happened, where, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass

from minga.errors import RunError

__all__ = ["HostsChangedError", "Loss", "LossError"]


@dataclass(frozen=True, slots=True)
class Loss:
    """A host or rank that a run has lost.

    Attributes
    ----------
    cause
        Message that says what was lost and why: "host bee was lost: it has been silent for 10 s".
    host
        Name of the host; None if it is not known.
    step
        Steps that were done, as far as known.
    at_once
        True if the launcher of MPI has noticed it itself, or is about to, so that it may end in its own way.
    starting
        True if it was noticed when ranks were to be started again, so that nothing could be gained since.
    """

    cause: str
    host: str | None = None
    step: int = 0
    at_once: bool = False
    starting: bool = False

    def cost(self, checkpoint: int | None) -> str:
        """Return a message about the steps to repeat from a newest checkpoint's step, None without one."""
        back = (
            "its beginning, as no checkpoint was written"
            if checkpoint is None
            else f"its checkpoint of step {checkpoint}"
        )
        return f"the run goes back to {back}, from step {max(self.step, checkpoint or 0)} or a later one"


class LossError(RunError):
    """The end of the ranks of a run because some of them, or a host, were lost.

    Parameters
    ----------
    loss
        The loss.
    message
        Message for people; by default the cause of the loss.
    """

    def __init__(self, loss: Loss, message: str = "") -> None:
        super().__init__(message or loss.cause)
        self.loss = loss

    def saying(self, message: str) -> LossError:
        """Return an error about the same loss with another message."""
        return LossError(self.loss, message)


class HostsChangedError(Exception):
    """Raised where a run was stopped to continue with other hosts: the message says with or without which."""
