"""The name of `argparse` that is not public, checked with Python 3.10 to 3.13."""

import argparse

from compat import checked_with

from shardwright.pipelines.commands.argparse_compat import actions_of


def test_a_parser_has_its_options_and_arguments_in_order():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_mutually_exclusive_group().add_argument("--one", "-o")
    assert [action.dest for action in actions_of(parser)] == ["help", "file", "one"]


def test_the_versions_that_were_checked():
    checked_with("python", ">=3.10,<3.14")
