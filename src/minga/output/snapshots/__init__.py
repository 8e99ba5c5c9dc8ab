"""Frames of a run on their way to the disk, and what they find there: see docs/output.md.

:class:`~minga.output.snapshots.snapshots.Snapshots` is what a run uses. Beneath it, each file is about one thing:
``settings`` what is asked for, ``selection`` which points, ``chunks`` how they are cut and who writes what, ``staging``
the transfer from blocks to chunks, ``writer`` the queue and its thread, ``codec`` the bytes of a chunk, ``files`` how a
file gets to the disk whole, ``manifest`` the line of a complete frame, ``metadata`` and ``archive`` the Zarr store.
"""
