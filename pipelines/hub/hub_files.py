"""What a repository of a model hub gets of a blessed model.

saved_model/    the pushed folder as it is, with thresholds (`assets/thresholds.json`) and `lineage.json`
README.md       the model card, headed by the metadata that the hub reads
metrics.json    all metrics of the blessing, and what they are of
app.py          a page of Gradio, if it is wanted, with requirements.txt
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from shardwright.components.model_files.saved_model import check_saved_model
from shardwright.config import Config
from shardwright.config.push import HubConfig
from shardwright.errors import DatasetError, UsageError
from shardwright.evaluation.figures import Figures, Measured, title_of
from shardwright.lineage.blessing import Blessing, read_blessing
from shardwright.pipelines.commands.card import card_of_model
from shardwright.storage import buckets, is_remote, open_file, read_bytes
from shardwright.storage.checksum import checksum_file, checksum_of
from shardwright.storage.paths import split_url
from shardwright.storage.scratch import scratch_folder

MODEL = "saved_model"
_CARD, _METRICS, _APP = "README.md", "metrics.json", "app.py"
_PAGE = Path(__file__).with_name("gradio_app.txt")
_APP_NEEDS = "gradio>=5\nnumpy\npillow\ntensorflow\n"
_MOST_ABOUT = 1 << 20


@dataclass(frozen=True)
class HubFiles:
    """The files of one version.

    Attributes:
        version: name of the pushed folder.
        summary: first line of the commit.
        files: path in the repository -> a file of this machine, or its content.
    """

    version: str
    summary: str
    files: Mapping[str, Path | bytes]

    @property
    def tag(self) -> str:
        """The tag of the version, by the content of all files: the same files are pushed once."""
        hashes = {
            name: checksum_of(content) if isinstance(content, bytes) else checksum_file(content)
            for name, content in sorted(self.files.items())
        }
        return f"blessed-{checksum_of(json.dumps(hashes).encode())[:12]}"

    def sizes(self) -> dict[str, int]:
        """Returns the size of each file in bytes."""
        return {
            name: len(content) if isinstance(content, bytes) else content.stat().st_size
            for name, content in sorted(self.files.items())
        }


@contextmanager
def hub_files(config: Config, hub: HubConfig, pushed: str, *, trusted: bool = False) -> Iterator[HubFiles]:
    """Yields the files of the blessed model of a push folder; those of a bucket are copied here first.

    Args:
        config: of the model.
        hub: what is to be pushed.
        pushed: folder or URL that models are pushed to.
        trusted: see `check_saved_model`.

    Raises:
        UsageError: no model was blessed there, or `push.hub.about` cannot be read.
        DatasetError: the model does more than compute.
    """
    blessing = read_blessing(pushed)
    if blessing is None:
        raise UsageError(
            f"{pushed}: no model was blessed there yet. Run the pipeline, or name its folder: --pushed DIR."
        )
    place = os.path.join(pushed, blessing.model)
    check_saved_model(place, trusted=trusted)
    with _on_this_machine(place) as model:
        files: dict[str, Path | bytes] = {
            f"{MODEL}/{file.relative_to(model).as_posix()}": file for file in sorted(model.rglob("*")) if file.is_file()
        }
        files[_CARD] = _card(config, hub, place, blessing).encode()
        files[_METRICS] = _json({"metrics": blessing.metrics, "measured": blessing.measured, "digest": blessing.digest})
        if hub.app:
            files |= {_APP: _PAGE, "requirements.txt": _APP_NEEDS.encode()}
        means = [f"{name} {value:.4g}" for name, value in blessing.metrics.items() if "/" not in name]
        yield HubFiles(blessing.model, f"Blessed model {blessing.model}: {', '.join(sorted(means))}", files)


@contextmanager
def _on_this_machine(place: str) -> Iterator[Path]:
    if not is_remote(place):
        yield Path(place)
        return
    start = len(split_url(place)[2]) + 1
    sizes = {info.name[start:]: info.size for info in buckets.list_objects(f"{place}/")}
    with scratch_folder(sum(sizes.values())) as folder:
        for name in sizes:
            if ".." in name.split("/"):
                raise DatasetError(f"{place}: contains the name {name!r}, which leads out of it. Push the model again.")
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            with open_file(f"{place}/{name}") as source, file.open("xb") as target:
                shutil.copyfileobj(source, target)
        yield Path(folder)


def _card(config: Config, hub: HubConfig, place: str, blessing: Blessing) -> str:
    about = "" if hub.about is None else _about(config.resolve(hub.about))
    measured = Measured.from_dict(blessing.measured) if blessing.measured else None
    figures = Figures(blessing.metrics, measured) if measured else None
    card = card_of_model(place, [], config.name, figures=figures, about=about)
    head = yaml.safe_dump(_head(config, hub, blessing, measured), sort_keys=False, allow_unicode=True)
    return f"---\n{head}---\n\n{card}"


def _about(file: str) -> str:
    try:
        return read_bytes(file, most=_MOST_ABOUT).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"push.hub.about: {file} cannot be read ({error}). Name a Markdown file.") from None


def _head(config: Config, hub: HubConfig, blessing: Blessing, measured: Measured | None) -> dict[str, Any]:
    """Returns the metadata of the model card, as huggingface.co/docs/hub/model-cards describes it."""
    task = f"image-{config.task}"
    values = {
        name: value for name, value in sorted(blessing.metrics.items()) if "/" not in name and math.isfinite(value)
    }
    results = {
        "task": {"type": task},
        "dataset": {"type": "imagefolder", "name": config.name, **({"split": measured.split} if measured else {})},
        "metrics": [{"type": name, "name": title_of(name), "value": value} for name, value in values.items()],
    }
    return {
        "license": hub.license,
        "library_name": "shardwright",
        "pipeline_tag": task,
        "tags": ["shardwright", "tensorflow", "keras", "saved-model"],
        "metrics": list(values),
        **({"model-index": [{"name": config.name, "results": [results]}]} if values else {}),
    }


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
