"""Names of shards: what a pattern may hold, and that no two shards share a name."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.config.shards import DEFAULT_TEMPLATE, PatternError
from shardwright.dataset.shard_names import ShardNames


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (DEFAULT_TEMPLATE, "data-00003-of-00010.tfrecord"),
        ("{split}{index:02d}-512x512-{count}.tfrec", "train03-512x512-798.tfrec"),
        ("{split}-{index:05d}-of-{of:05d}.tfrecord", "train-00003-of-00010.tfrecord"),
        ("flowers{index:02d}-{count}.tfrec", "flowers03-798.tfrec"),
        ("{index:4d}.rec", "   3.rec"),
    ],
)
def test_placeholders_are_filled_in(pattern, name):
    assert ShardNames(pattern).name("train", 3, 10, 798) == name


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("{split}.tfrecord", "every shard has the same name"),
        ("{index}.tfrecord.gz", "compressed"),
        ("{index}.GZ", "compressed"),
        ("{index}", "extension"),
        ("{index}.{of}", "extension"),
        ("{index}.7z", "extension"),
        ("a/{index}.rec", "'/'"),
        ("..\\{index}.rec", r"'\\\\'"),
        ("{index}\n.rec", "cannot be in"),
        ("{index}*.rec", "cannot be in"),
        ("{index}}.rec", "cannot be in"),
        (".{index}.rec", "pass over"),
        ("_{index}.rec", "pass over"),
        ("{shard}.rec", "one of {split}, {index}, {of}, {count}"),
        ("{}.rec", "not one of"),
        ("{index!r}.rec", "not one of"),
        ("{index.__class__}.rec", "not one of"),
        ("{index:>5}.rec", "not a width"),
        ("{index:999999999d}.rec", "not a width"),
        ("{split:5d}-{index}.rec", "not a width"),
        ("{count}{index}.rec", "not a digit"),
        ("{count}0{index}.rec", "not a digit"),
        ("{count}{of}{index}.rec", "not a digit"),
        ("x" * 200 + "{index}.rec", "longer"),
    ],
)
def test_patterns_that_name_no_files_are_refused(pattern, message):
    with pytest.raises(PatternError, match=message):
        ShardNames(pattern)


_LITERALS = st.text("ab-_.x09", max_size=4)
_FIELDS = st.sampled_from(["{split}", "{index}", "{index:03d}", "{of}", "{count}", "{count:5d}"])


@given(st.lists(st.tuples(_LITERALS, _FIELDS), min_size=1, max_size=4))
def test_no_two_shards_of_a_split_share_a_name(parts):
    try:
        names = ShardNames("".join(literal + field for literal, field in parts) + ".rec")
    except PatternError:
        return
    shards = list(itertools.product(range(25), (0, 1, 2, 11, 12, 110, 112)))
    for (index, count), (other, others_count) in itertools.combinations(shards, 2):
        if index != other:
            assert names.name("train", index, 25, count) != names.name("train", other, 25, others_count)
