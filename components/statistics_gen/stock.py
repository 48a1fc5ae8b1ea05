"""Options for TFX's own StatisticsGen."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow_data_validation as tfdv
from tensorflow_metadata.proto.v0 import schema_pb2

from shardwright.config.check_arguments import check_call
from shardwright.dataset.dataset_schema import identity_features
from shardwright.dataset.feature_presets import COMMON_FEATURES
from shardwright.errors import ConfigError

_PIXELS = "image/encoded"


@check_call
def statistics_options(identifiers: Sequence[str] = ()) -> tfdv.StatsOptions:
    """Returns options with which TFX's StatisticsGen counts no names of images.

    TFX's SchemaGen makes a list of allowed values of every text that has few of them. A schema of a small dataset, or
    one with a small split, then allows the names of these images, and no others: the next images do not fit. With these
    options the features `image/key`, `image/filename` and the checksums get no list, nor does `image/encoded`. Our own
    StatisticsGen needs no options.

    Example:
        ```python
        statistics_gen = tfx.components.StatisticsGen(
            examples=example_gen.outputs["examples"], stats_options=statistics_options()
        )
        ```

    Args:
        identifiers: further features whose values are names: columns of your own, or those that a preset or
            `features.map` names differently.

    Raises:
        ConfigError: `identifiers` is not a list of names.
    """
    listed = isinstance(identifiers, Sequence) and not isinstance(identifiers, str)
    if not listed or not all(isinstance(name, str) and name for name in identifiers):
        fix = 'Write for example identifiers=["patient"].'
        raise ConfigError("statistics_options: identifiers", f"{identifiers!r} is not a list of names", fix)
    schema = schema_pb2.Schema()
    for name in sorted({*identity_features(COMMON_FEATURES, {}), _PIXELS, *identifiers}):
        # The only features of bytes whose values TFDV does not count.
        schema.feature.add(name=name, type=schema_pb2.BYTES).image_domain.SetInParent()
    return tfdv.StatsOptions(schema=schema)
