"""Files of a run: snapshots, stores, ledgers and exports."""
