"""Runs inside the environment of an annotation tool: lets the tool write a data set, and read it again as the truth.

Nothing of Shardwright is imported here; see `benchmarks.annotation_tools`.
"""
