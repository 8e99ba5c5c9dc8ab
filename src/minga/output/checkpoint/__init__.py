"""Checkpoints: the complete state of a run between two steps on the disk, so that it can go on after whatever ended it.

``RUN/checkpoints`` holds two of them, in ``a`` and ``b``, written in turn: while one is replaced the other is whole.
Each has a file of blocks for every rank that wrote it (:mod:`minga.output.checkpoint.blocks`) and ``checkpoint.json``
(:mod:`minga.output.checkpoint.head`), which is written last: without it, or where its checksum or that of a block is
wrong, the checkpoint does not count.

=============  =========================================================================
``blocks``     blocks of fields in files, with checksums
``head``       what a checkpoint says of itself
``identity``   what has to be equal, so that a run can go on from it
``slots``      writing and reading whole checkpoints, on any number of ranks
``keeper``     when one is due, and what a run does with them
=============  =========================================================================
"""
