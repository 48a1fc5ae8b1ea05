"""Benchmarks of the project; not installed. `python -m benchmarks SUBJECT`."""
