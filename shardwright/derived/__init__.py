"""Datasets made of datasets: parts of them, new annotations for them, files again, and in what two differ."""
