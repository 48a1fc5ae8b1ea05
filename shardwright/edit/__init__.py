"""Datasets made of datasets: subset, reshard, merge, relabel, delete, diff, export."""
