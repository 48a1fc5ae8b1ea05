"""`split` in a configuration: what is taken, and what is refused with its place and a way out."""

import pytest

from shardwright.config import parse_config
from shardwright.errors import ConfigError


def split(**options):
    raw = {"input": {"images": "photos"}, "evaluator": {"split": "eval"}, "split": options}
    return parse_config(raw, base="/").split


def test_shares_are_on_the_level_of_the_options():
    found = split(train=0.7, eval="20%", test=0.1, by="group", group={"pattern": "^([^/]+)/"}, salt="x")
    assert found.shares == {"train": 0.7, "eval": 0.2, "test": 0.1}
    assert (found.by, found.salt, found.group.pattern, found.group.column) == ("group", "x", "^([^/]+)/", None)
    assert found.names == ("eval", "test", "train")


def test_the_shares_of_folds_follow_from_their_number():
    assert split(by="kfold", folds=5, fold=0).shares == pytest.approx({"train": 0.72, "eval": 0.18, "test": 0.1})
    assert split(by="kfold", folds=5, fold=4, test=0).shares == pytest.approx({"train": 0.8, "eval": 0.2})
    assert split(by="kfold", folds=2, fold=1, holdout=0.5).names == ("eval", "holdout", "train")


def test_lists_and_rest_name_the_splits():
    lists = {"train": "a.txt", "eval": "b.txt"}
    assert split(by="predefined", lists=lists).names == ("eval", "train")
    assert split(by="predefined", lists=lists, rest="test").names == ("eval", "test", "train")
    assert split(by="predefined").names == ("eval", "test", "train")


@pytest.mark.parametrize(
    ("options", "path", "problem"),
    [
        ({"by": "chance"}, "split.by", "Use one of: hash, group, stratified, kfold, predefined"),
        ({"by": "group"}, "split.group", "missing"),
        ({"by": "hash", "group": {"column": "a"}}, "split.group", "by: group or stratified or kfold"),
        ({"by": "group", "group": {}}, "split.group", "one of column and pattern"),
        ({"by": "group", "group": {"column": "a", "pattern": "(a)"}}, "split.group", "one of column and pattern"),
        ({"by": "group", "group": {"pattern": "("}}, "split.group.pattern", "not a regular expression"),
        ({"by": "group", "group": {"pattern": "a"}}, "split.group.pattern", "has 0 groups"),
        ({"by": "group", "group": {"pattern": "(a)(b)"}}, "split.group.pattern", "has 2 groups"),
        ({"by": "kfold", "fold": 0}, "split.folds", "missing"),
        ({"by": "kfold", "folds": 5}, "split.fold", "missing"),
        ({"by": "kfold", "folds": 1, "fold": 0}, "split.folds", "too small"),
        ({"by": "kfold", "folds": 5, "fold": 5}, "split.fold", "from 0 to 4"),
        ({"by": "kfold", "folds": 5, "fold": 0, "train": 0.8}, "split.train", "follows from split.folds"),
        ({"by": "kfold", "folds": 5, "fold": 0, "test": 1.0}, "split", "less than 1"),
        ({"by": "stratified", "fold": 0}, "split.fold", "by: kfold"),
        ({"by": "stratified", "stratify": True}, "split.stratify", "by: kfold"),
        ({"by": "hash", "column": "a"}, "split.column", "by: predefined"),
        ({"by": "hash", "rest": "train"}, "split.rest", "by: predefined"),
        ({"by": "predefined", "rest": "other"}, "split.rest", "Use one of: fail, train, eval, test"),
        ({"by": "predefined", "lists": {}}, "split.lists", "empty"),
        ({"by": "predefined", "lists": {"train": "a"}, "column": "b"}, "split.lists", "is given, too"),
        ({"by": "predefined", "lists": {"Train": "a", "eval": "b"}}, "split.lists.Train", "not a split's name"),
        ({"by": "kfold", "folds": 2, "fold": 0, "stratify": True, "previous": "old"}, "split.previous", "not known"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(options, path, problem):
    with pytest.raises(ConfigError) as caught:
        split(**options)
    assert caught.value.path == path
    assert problem in str(caught.value)


def test_the_evaluated_split_must_be_one_that_lists_name():
    raw = {"input": {"images": "photos"}, "split": {"by": "predefined", "lists": {"train": "a", "eval": "b"}}}
    with pytest.raises(ConfigError, match="evaluator.split: 'test' is not a split"):
        parse_config(raw, base="/")
