"""`BLESSED.json`: which of the pushed models is the blessed one, and why.

A push folder has one folder per pushed model and this file, which is replaced atomically. So a reader finds the old
blessing or the new one. The model that it names is complete, since it was copied before.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shardwright.errors import DatasetError
from shardwright.storage import is_folder, read_bytes
from shardwright.storage.checksum import checksum_file, new_checksum
from shardwright.storage.durable import write_file
from shardwright.untrusted import json_text as untrusted
from shardwright.untrusted.json_text import parse_untrusted_json

BLESSING_FILE = "BLESSED.json"
_BLESSING = untrusted.record(
    {"model": untrusted.file_name, "digest": untrusted.text},
    {
        "metrics": untrusted.mapped(untrusted.number),
        "measured": untrusted.mapped(untrusted.anything),
        "fingerprints": untrusted.mapped(untrusted.text),
        "examples": untrusted.mapped(untrusted.text),
    },
)
# In `Blessing.examples`.
PLACE, DIGEST = "place", "digest"


@dataclass(frozen=True)
class Blessing:
    """A blessed model.

    Attributes:
        model: its folder, relative to the push folder.
        digest: hash of the model's files, see `model_digest`.
        metrics: its metrics in the evaluation.
        measured: what they are of, as `shardwright.evaluation.figures.Measured.to_dict` returns it.
        fingerprints: role (`training`, `dataset`, ...) -> fingerprint of its sources.
        examples: `place` and `digest` of the dataset of its images. Only compiled pipelines record it: on one machine
            all artifacts are found by their digests.
    """

    model: str
    digest: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)


def read_blessing(push_directory: str | os.PathLike[str]) -> Blessing | None:
    """Reads the current blessing.

    Args:
        push_directory: folder or URL that models are pushed to; it may be missing.

    Returns:
        The blessing, or `None` when no model was ever blessed there.

    Raises:
        DatasetError: the file is damaged, or the model it names is gone.
    """
    file = os.path.join(push_directory, BLESSING_FILE)
    try:
        blessing = parse_blessing(read_bytes(file))
        model = os.path.join(push_directory, blessing.model)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise DatasetError(f"{file}: not a readable blessing ({error}). Restore it, or delete it.") from None
    if not is_folder(model):
        raise DatasetError(
            f"{file}: names the model {model}, which does not exist. Restore the model, or delete the file."
        )
    return blessing


def parse_blessing(text: bytes) -> Blessing:
    """Reads the content of a `BLESSED.json`, whose model is in the same folder; `ValueError` when it is not one."""
    return Blessing(**_BLESSING(parse_untrusted_json(text), ""))


def write_blessing(push_directory: str | os.PathLike[str], blessing: Blessing) -> None:
    """Replaces the current blessing, atomically."""
    target = Path(push_directory, BLESSING_FILE)
    row = {name: dict(value) if isinstance(value, Mapping) else value for name, value in vars(blessing).items()}
    # Earlier versions, which do not know these fields, can read the file without them.
    text = (
        json.dumps(
            {name: value for name, value in row.items() if value or name not in ("examples", "measured")},
            sort_keys=True,
            indent=1,
            ensure_ascii=False,
            allow_nan=False,
        )
        + "\n"
    )
    write_file(target, text)


def baseline_digest(push_directory: str | os.PathLike[str]) -> str:
    """Returns the digest of the blessed model, empty without one; it is the cache key of BaselineResolver."""
    blessing = read_blessing(push_directory)
    return blessing.digest if blessing else ""


def model_digest(folder: str | os.PathLike[str]) -> str:
    """Returns the BLAKE3 over the relative paths and the hashes of all files in a model's folder."""
    digest = new_checksum()
    root = Path(folder)
    for file in sorted(path for path in root.rglob("*") if path.is_file()):
        digest.update(f"{checksum_file(file)}  {file.relative_to(root).as_posix()}\n".encode())
    return digest.hexdigest()
