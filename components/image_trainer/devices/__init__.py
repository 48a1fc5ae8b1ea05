"""Accelerators and hosts: which there are, and which a training uses."""
