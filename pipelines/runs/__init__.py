"""Local runs: logs, metadata store, summary, cleaning, disk space."""
