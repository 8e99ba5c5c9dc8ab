"""The watchdog of a run: it notices hosts and ranks that are lost, beside MPI, which may not notice for minutes.

Each rank renews its *pulse*, a few numbers in a file in memory (:mod:`~minga.launch.watchdog.pulse`,
:mod:`~minga.launch.watchdog.heart`). On each host an *agent* reads the pulses and the states of the processes
(:mod:`~minga.launch.watchdog.lookout`) and reports them once a second; an agent that hears nothing more from the
process that started the run ends the ranks of its host (:mod:`~minga.launch.watchdog.agent`). In that process a
*watch* listens to all agents (:mod:`~minga.launch.watchdog.watch`), and decides by simple limits who is lost
(:mod:`~minga.launch.watchdog.judge`). What follows a loss is decided by :mod:`~minga.launch.watchdog.restarts`.
"""
