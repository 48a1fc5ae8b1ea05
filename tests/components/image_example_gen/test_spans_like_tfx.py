"""The span and version that are read are those that TFX's ExampleGen reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_tests import tries

from shardwright.storage.spans import Choice, SpanPath, candidates

PATTERNS = ("{SPAN}/v{VERSION}/*.jpg", "{SPAN:5}/{VERSION:2}/*.jpg", "{YYYY}-{MM}-{DD}/{VERSION}/*")
FOLDERS = st.sets(st.tuples(st.integers(0, 20_000), st.integers(0, 30)), min_size=1, max_size=5)


@pytest.mark.parametrize("pattern", PATTERNS)
@tries(20)
@given(folders=FOLDERS, only=st.booleans(), data=st.data())
def test_the_newest_span_and_version_are_those_of_tfx(tmp_path_factory, pattern, folders, only, data):
    from tfx.components.example_gen import utils
    from tfx.proto import example_gen_pb2, range_config_pb2

    root = tmp_path_factory.mktemp("spans")
    for span, version in folders:
        year, month, day = utils.span_number_to_date(span)
        name = pattern.replace("{SPAN:5}", f"{span:05}").replace("{VERSION:2}", f"{version:02}")
        name = name.replace("{SPAN}", str(span)).replace("{VERSION}", str(version))
        name = name.replace("{YYYY}", f"{year:04}").replace("{MM}", f"{month:02}").replace("{DD}", f"{day:02}")
        file = root / name.replace("*.jpg", "a.jpg").replace("*", "a.jpg")
        file.parent.mkdir(parents=True)
        file.touch()
    chosen = data.draw(st.sampled_from(sorted({span for span, _ in folders}))) if only else None
    limits = {"start_span_number": chosen, "end_span_number": chosen}
    config = range_config_pb2.RangeConfig(static_range=limits) if only else None
    split = example_gen_pb2.Input.Split(name="all", pattern=pattern)
    expected = utils.calculate_splits_fingerprint_span_and_version(str(root), [split], config)[1:]

    path = SpanPath.parse("input.images", f"{root}/{pattern}")
    found = path.find(lambda folder: [entry.name for entry in type(root)(folder).iterdir()])
    span = Choice.parse("input.span", "newest" if chosen is None else str(chosen))
    assert candidates(found, span, Choice.parse("input.version", "newest"))[-1][0][:2] == expected
