"""What measures the project itself; not installed. `python -m benchmarks SUBJECT`."""
