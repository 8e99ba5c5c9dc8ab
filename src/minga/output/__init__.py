"""What a run leaves: snapshots, stores, ledgers and exports."""
