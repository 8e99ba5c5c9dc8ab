"""Frames of a run on their way to the disk, and their format there: see docs/output.md.

:class:`~minga.output.snapshots.snapshots.Snapshots` is the interface for a run. Beneath it, each file has one subject:
``selection`` the kept points, ``chunks`` their cuts and the ranks that write them, ``staging`` the transfer from blocks
to chunks, ``writer`` the queue and its thread, ``codec`` the bytes of a chunk, ``files`` complete files on the disk,
``manifest`` the line of a complete frame, ``metadata`` and ``archive`` the Zarr store.
"""
