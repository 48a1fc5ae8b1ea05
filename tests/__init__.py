"""A regular package: a folder without this file would lose to the `tests` that IPython puts on the path."""
