"""`split` in a configuration: what is taken, and what is refused with its place and a way out."""

import dataclasses
from datetime import date

import build
import pytest

from shardwright.config import SplitConfig, parse_config
from shardwright.errors import ConfigError


def split(**options):
    """The section with some options; any other name is that of a split."""
    known = {field.name for field in dataclasses.fields(SplitConfig)}
    shares = {name: share for name, share in options.items() if name not in known}
    section = {**{name: options[name] for name in options if name in known}, **({"ratios": shares} if shares else {})}
    raw = {"input": {"images": "photos"}, "evaluator": {"split": "eval"}, "split": section}
    return parse_config(raw, base="/").split


def test_shares_are_apart_from_the_options():
    found = split(train=0.7, eval="20%", test=0.1, method="group", group={"regex": "^([^/]+)/"}, salt="x")
    assert found.ratios == {"train": 0.7, "eval": 0.2, "test": 0.1}
    assert (found.method, found.salt, found.group.regex, found.group.column) == ("group", "x", "^([^/]+)/", None)
    assert found.names == ("eval", "test", "train")


def test_the_shares_of_folds_follow_from_their_number():
    assert split(method="kfold", num_folds=5, fold_index=0).ratios == pytest.approx(
        {"train": 0.72, "eval": 0.18, "test": 0.1}
    )
    assert split(method="kfold", num_folds=5, fold_index=4, test=0).ratios == pytest.approx({"train": 0.8, "eval": 0.2})
    assert split(method="kfold", num_folds=2, fold_index=1, holdout=0.5).names == ("eval", "holdout", "train")


def test_lists_and_rest_name_the_splits():
    lists = {"train": "a.txt", "eval": "b.txt"}
    assert split(method="predefined", from_lists=lists).names == ("eval", "train")
    assert split(method="predefined", from_lists=lists, unlisted_images="test").names == ("eval", "test", "train")
    assert split(method="predefined").names == ("eval", "test", "train")


@pytest.mark.parametrize(
    ("options", "path", "problem"),
    [
        ({"method": "chance"}, "split.method", "Use one of: auto, hash, group, stratified, kfold, predefined"),
        ({"method": "group"}, "split.group", "missing"),
        ({"method": "hash", "group": {"column": "a"}}, "split.group", "method: group or stratified or kfold"),
        ({"method": "group", "group": {}}, "split.group", "one of column and regex"),
        ({"method": "group", "group": {"column": "a", "regex": "(a)"}}, "split.group", "one of column and regex"),
        ({"method": "group", "group": {"regex": "("}}, "split.group.regex", "not a regular expression"),
        ({"method": "group", "group": {"regex": "a"}}, "split.group.regex", "has 0 groups"),
        ({"method": "group", "group": {"regex": "(a)(b)"}}, "split.group.regex", "has 2 groups"),
        ({"method": "kfold", "fold_index": 0}, "split.num_folds", "missing"),
        ({"method": "kfold", "num_folds": 5}, "split.fold_index", "missing"),
        ({"method": "kfold", "num_folds": 1, "fold_index": 0}, "split.num_folds", "too small"),
        ({"method": "kfold", "num_folds": 5, "fold_index": 5}, "split.fold_index", "from 0 to 4"),
        (
            {"method": "kfold", "num_folds": 5, "fold_index": 0, "train": 0.8},
            "split.ratios.train",
            "follows from split.num_folds",
        ),
        ({"method": "kfold", "num_folds": 5, "fold_index": 0, "test": 1.0}, "split.ratios", "less than 1"),
        ({"method": "stratified", "fold_index": 0}, "split.fold_index", "method: kfold"),
        ({"method": "stratified", "stratify": True}, "split.stratify", "method: kfold"),
        ({"method": "hash", "from_column": "a"}, "split.from_column", "method: predefined"),
        ({"method": "hash", "unlisted_images": "train"}, "split.unlisted_images", "method: predefined"),
        (
            {"method": "predefined", "unlisted_images": "other"},
            "split.unlisted_images",
            "Use one of: fail, train, eval, test",
        ),
        ({"method": "predefined", "from_lists": {}}, "split.from_lists", "empty"),
        (
            {"method": "predefined", "from_lists": {False: "a"}},
            "split.from_lists",
            "key no, off or false as a text",
        ),
        ({"method": "predefined", "from_lists": {None: "a"}}, "split.from_lists", "null or ~ as a text. Put it in quo"),
        (
            {"method": "predefined", "from_lists": {"train": date(2024, 1, 2)}},
            "split.from_lists.train",
            "2024-01-02",
        ),
        (
            {"method": "predefined", "from_lists": {"train": "a"}, "from_column": "b"},
            "split.from_lists",
            "is given, too",
        ),
        (
            {"method": "predefined", "from_lists": {"Train": "a", "eval": "b"}},
            "split.from_lists.Train",
            "not a split's name",
        ),
        (
            {"method": "kfold", "num_folds": 2, "fold_index": 0, "stratify": True, "keep_from": "old"},
            "split.keep_from",
            "not known",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(options, path, problem):
    with pytest.raises(ConfigError) as caught:
        split(**options)
    assert caught.value.path == path
    assert problem in str(caught.value)


def test_the_evaluated_split_must_be_one_that_lists_name():
    raw = {"input": {"images": "photos"}, "split": {"method": "predefined", "from_lists": {"train": "a", "eval": "b"}}}
    # The default, `test`, gives way to `eval`.
    assert parse_config(raw, base="/").evaluator.split == "eval"
    with pytest.raises(ConfigError, match="evaluator.split: 'test' is not a split"):
        parse_config({**raw, "evaluator": {"split": "test"}}, base="/")


@pytest.mark.parametrize("name", ["val", "valid", "validation"])
def test_another_name_of_eval_is_understood_and_logged(name):
    raw = {"input": {"images": "x"}, "split": {"ratios": {"train": 0.8, name: 0.2}}, "evaluator": {"split": name}}
    config = parse_config(raw, base="/")
    assert config.split.ratios == {"train": 0.8, "eval": 0.2}
    assert config.evaluator.split == "eval"
    assert config.notes == (f"the split {name} is understood as eval",)
    listed = {"method": "predefined", "from_lists": {"train": "a", "test": "b"}, "unlisted_images": "train"}
    assert build.config(split=listed).notes == ()
    with pytest.raises(ConfigError, match=rf"split\.ratios\.{name}: is another name of eval, .* Give one of them"):
        build.config(split={"ratios": {name: 0.5, "eval": 0.5}})
