"""Places below a folder that is given at run time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.errors import UsageError
from shardwright.ingest import InputLocation
from shardwright.ingest.recipe import absolute_places, location_json, relative_places

NAMES = st.text(alphabet="abc{SPAN}*", min_size=1, max_size=6)
PLACES = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


@given(
    st.sampled_from(["/data", "gs://bucket/a", "s3://bucket"]),
    PLACES,
    st.none() | PLACES,
    st.dictionaries(st.sampled_from(["train", "test"]), PLACES),
)
def test_below_its_own_folder_everything_is_where_it_was(root, images, labels, lists):
    location = InputLocation(
        f"{root}/{images}",
        None if labels is None else f"{root}/{labels}",
        {split: f"{root}/{place}" for split, place in lists.items()},
        span="3",
    )
    found, places = relative_places(location)
    assert found.startswith(root)
    assert absolute_places(found, places) == location
    assert not set("*?[{") & set(found)
    assert InputLocation.from_json(location_json(location)) == location


def test_the_folder_is_the_deepest():
    location = InputLocation("gs://b/clouds/{SPAN}/images/*.jpg", "gs://b/clouds/{SPAN}/train.csv")
    assert relative_places(location)[0] == "gs://b/clouds"
    moved = absolute_places("/mnt/data", relative_places(location)[1])
    assert moved.images == "/mnt/data/{SPAN}/images/*.jpg"


@pytest.mark.parametrize(("images", "labels"), [("gs://a/x", "gs://b/y"), ("/a/x", "gs://a/y"), ("/x", None)])
def test_without_a_folder_in_common(images, labels):
    with pytest.raises(UsageError, match="have no folder in common"):
        relative_places(InputLocation(images, labels))
