"""Checkpoints: the complete state of a run between two steps on the disk, so that it can be resumed after any end.

``RUN/checkpoints`` holds two of them, in ``a`` and ``b``, written in turn: while one is replaced the other is whole.
Each has a file of blocks for every rank that wrote it (:mod:`minga.output.checkpoint.blocks`) and ``checkpoint.json``
(:mod:`minga.output.checkpoint.head`), which is written last: without it, or if its checksum or that of a block is
wrong, the checkpoint does not count.

Hosts that share no files have such folders each, with the files of their own ranks, a copy of another host's files, and
``checkpoint.json``. A checkpoint is complete as long as every file of it is somewhere.

=============  =========================================================================
``blocks``     blocks of fields in files, with checksums
``head``       the description of a checkpoint
``identity``   the properties that must be equal for a run to be resumed from it
``places``     the folders of hosts that share no files, and whose parts are copied where
``slots``      writing whole checkpoints, on any number of ranks
``copies``     copies of the parts of a checkpoint on other hosts
``sets``       the checkpoints that are complete, on whatever hosts their parts are
``restore``    reading a checkpoint on any number of ranks
``messages``   what ranks send each other for that
``keeper``     the schedule of checkpoints, and their use by a run
=============  =========================================================================
"""
