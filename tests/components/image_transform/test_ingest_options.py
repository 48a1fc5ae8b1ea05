"""The image options of an ingest, and those that serving cannot repeat."""

import pytest

from shardwright.components.image_transform.transform_recipe import ingest_image_options
from shardwright.errors import ConfigError


@pytest.mark.parametrize(
    ("images", "wanted"),
    [
        ({}, {}),
        ({"quality": 70, "chroma": 422, "verify": "full"}, {}),
        ({"orientation": "apply", "verify": "full"}, {"orientation": "apply"}),
        ({"unsupported_formats": "png"}, {"unsupported_formats": "png"}),
        ({"max_pixels": 300_000_000, "verify": "full"}, {"max_pixels": 300_000_000}),
        ({"max_pixels": 9, "orientation": "apply"}, {"max_pixels": 9, "orientation": "apply"}),
        ({"max_pixels": 200_000_000}, {}),
        ({"resize": "longest_side", "size": 9, "chroma": 444}, {"resize": "longest_side", "size": 9, "chroma": 444}),
        ({"encoding": "png", "chroma": 422}, {"encoding": "png", "chroma": 422}),
        ({"unsupported_formats": "png", "chroma": 422}, {"unsupported_formats": "png", "chroma": 422}),
    ],
)
def test_only_options_that_change_pixels_are_returned(images, wanted):
    assert ingest_image_options({"images": images}) == wanted


@pytest.mark.parametrize(
    "step",
    [
        {"orientation": "apply"},
        {"orientation": "apply", "unsupported_formats": "png"},
        {"resize": "stretch", "size": [8, 8]},
        {"encoding": "jpeg"},
        {"unsupported_formats": "jpeg"},
    ],
)
def test_a_chroma_that_no_op_writes_is_refused(step):
    with pytest.raises(ConfigError, match=r"images\.chroma: 422 cannot be served.*encode_jpeg.*444 and 420"):
        ingest_image_options({"images": {**step, "chroma": 422}})
