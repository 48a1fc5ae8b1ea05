"""The part of `argparse` that is not public and that we use. Checked with Python 3.10 to 3.13.

`tests/pipelines/test_argparse_compat.py` fails when a release changes it.
"""

from __future__ import annotations

import argparse


def actions_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Returns the options and arguments of a parser, in the order in which they were added."""
    return list(parser._actions)
