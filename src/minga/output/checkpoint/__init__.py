"""Checkpoints: the complete state of a run between two steps on the disk, so that it can be resumed after any end.

``RUN/checkpoints`` holds two of them, in ``a`` and ``b``, written in turn: while one is replaced the other is whole.
Each has a file of blocks for every rank that wrote it (:mod:`minga.output.checkpoint.blocks`) and ``checkpoint.json``
(:mod:`minga.output.checkpoint.head`), which is written last: without it, or if its checksum or that of a block is
wrong, the checkpoint does not count.

=============  =========================================================================
``blocks``     blocks of fields in files, with checksums
``head``       the description of a checkpoint
``identity``   the properties that must be equal for a run to be resumed from it
``slots``      writing and reading whole checkpoints, on any number of ranks
``keeper``     the schedule of checkpoints, and their use by a run
=============  =========================================================================
"""
