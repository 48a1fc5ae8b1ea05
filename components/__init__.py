"""Shardwright's TFX components, one folder each: `component.py` (what goes in and out), `executor.py` (the work)."""
