"""The output of launchers that people see."""

from __future__ import annotations

import io

from minga.launch.launcher_output import pass_on


def test_a_rank_that_ended_all_others_is_not_told_again_and_errors_within_mpi_are() -> None:
    ended = "Abort(1) on node 0 (rank 0 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0\n"
    fatal = "Abort(269056527) on node 1 (rank 1 in comm 0): Fatal error in internal_Send: Other MPI error\n"
    said: list[str] = []
    target = io.StringIO()
    pass_on(["minga: field 'u' is not finite\n", ended, fatal], target, said)
    assert target.getvalue() == "minga: field 'u' is not finite\n" + fatal
    assert ended in said
