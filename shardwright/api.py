"""What `import shardwright` offers beside `Dataset` and `load`: a dataset of a configuration, in one call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from shardwright.config import Config, load_config, parse_config
from shardwright.dataset import Dataset
from shardwright.ingest import ingest


def make_dataset(
    config: Config | Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    quiet: bool = True,
) -> Dataset:
    """Makes a dataset, as `shardwright ingest` does.

    Workers are processes that import the main module: a script that calls this needs the usual
    `if __name__ == "__main__"`.

    Args:
        config: a YAML file, or what would stand in one: `{"input": {"images": "photos"}}`; relative paths start from
            the current folder.
        out: folder to write, or a URL; where it holds this very dataset, nothing is done.
        workers: processes; the result is the same.
        quiet: show no progress.

    Returns:
        The dataset.

    Raises:
        UsageError: the configuration, the input or `out` are not what they should be.
        CheckFailed: too many rejects, nothing matched, nothing written.
    """
    if isinstance(config, Mapping):
        config = parse_config(dict(config), base=os.getcwd())
    elif not isinstance(config, Config):
        config = load_config(config)
    ingest(config, out, workers=workers, quiet=quiet)
    return Dataset.open(out)
