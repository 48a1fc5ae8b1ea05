"""`beam`, and the checks that `vertex` and `kubeflow` share: components, resources, buckets, images, labels."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from shardwright.config.parsing import at_least, between
from shardwright.errors import ConfigError
from shardwright.storage.paths import GCS, is_remote
from shardwright.storage.spans import SpanPath

COMPONENTS = (
    "InputResolver",
    "ImageExampleGen",
    "StatisticsGen",
    "ImportSchemaGen",
    "SchemaGen",
    "ExampleValidator",
    "DataGate",
    "Report",
    "ImageTransform",
    "Trainer",
    "BaselineResolver",
    "Evaluator",
    "Pusher",
)

# Machines are taken away, and services answer 503 now and then.
RETRIES, MOST_RETRIES = 2, 10

# Registry with a port, path, then a tag or a digest: no tag means `latest`, which is another image every week.
# distribution/reference, regexp.go.
_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_TAG, _DIGEST = r":[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", r"@sha256:[0-9a-f]{64}"
_IMAGE = re.compile(rf"([A-Za-z0-9.-]+(:[0-9]+)?/)?{_PART}(/{_PART})*({_TAG}|({_TAG})?{_DIGEST})")
_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Resources:
    """The resources that a component's machine or pod must have.

    Attributes:
        cpu: virtual cores.
        memory: bytes.
    """

    cpu: float | None = None
    memory: int | None = None


LEAST = Resources(0.1, 128 * 10**6)


def check_resources(path: str, resources: Resources, most: Resources | None = None) -> None:
    """Refuses sizes that no machine has; `most` is the largest one."""
    for name in ("cpu", "memory"):
        value, least = getattr(resources, name), getattr(LEAST, name)
        if value is not None:
            at_least(f"{path}.{name}", value, least)
            if most is not None:
                between(f"{path}.{name}", value, least, getattr(most, name))


def check_components(path: str, names: Iterable[str], known: tuple[str, ...] = COMPONENTS) -> None:
    """Refuses unknown names of components."""
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            fix = f"Did you mean {close[0]}?" if close else f"Use: {', '.join(known)}."
            raise ConfigError(f"{path}.{name}", f"{name!r} is not a component here", fix)


def check_bucket(path: str, folder: str | None) -> None:
    """Refuses a folder that is not on Cloud Storage."""
    if folder is None or GCS.is_folder_url(folder):
        return
    is_bucket = not is_remote(folder) and not folder.startswith(("/", ".", "~"))
    fix = f"Write {GCS.prefix}{folder}." if is_bucket else f"Write {GCS.prefix}BUCKET/FOLDER."
    raise ConfigError(path, f"{folder!r} is not a folder on Cloud Storage", fix)


def check_data_root(path: str, folder: str | None) -> None:
    """Refuses a folder of data that is not on Cloud Storage, or that names spans."""
    check_no_span(path, folder)
    check_bucket(path, folder)


def check_no_span(path: str, folder: str | None) -> None:
    """Refuses a folder of data that names spans: only the paths of the input do."""
    if folder is not None and SpanPath.parse(path, folder) is not None:
        problem = f"{folder!r} names a span, and the spans are folders below it"
        raise ConfigError(path, problem, "Write the folder before the first mark.")


def check_image(path: str, image: str | None) -> None:
    """Refuses the name of an image without a tag or digest."""
    if image is not None and not _IMAGE.fullmatch(image):
        raise ConfigError(
            path,
            f"{image!r} is not the name of an image with a tag or a digest",
            "Write REGISTRY/NAME:TAG or …@sha256:HEX.",
        )


def check_label(path: str, name: str, value: str) -> None:
    """Refuses labels that Google Cloud refuses."""
    if not _LABEL.fullmatch(name) or not _LABEL_VALUE.fullmatch(value):
        raise ConfigError(
            f"{path}.{name}",
            f"{value!r} is not a label",
            "Use a-z, 0-9, _ and -, at most 63 characters, a letter first.",
        )


@dataclass(frozen=True)
class BeamConfig:
    """Options for Beam.

    Attributes:
        options: Options of all components, such as `--direct_num_workers=4`.
        per_component: Component -> its further options.
    """

    PATH: ClassVar[str] = "beam"

    options: tuple[str, ...] = ()
    per_component: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = {"beam.options": self.options}
        given |= {f"beam.per_component.{name}": options for name, options in self.per_component.items()}
        for path, options in given.items():
            for option in options:
                if not option.startswith("--"):
                    raise ConfigError(path, f"{option!r} is not an option of Beam", "Write --name=value.")
