"""`beam`, and the checks that `vertex` and `kubeflow` share: components, resources, buckets, images, labels."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.options import BYTES, Pattern, Section, option
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
LEAST_CPU, LEAST_MEMORY = 0.1, 128 * 10**6

# Registry with a port, path, then a tag or a digest: no tag means `latest`, which is another image every week.
# distribution/reference, regexp.go.
_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_TAG, _DIGEST = r":[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", r"@sha256:[0-9a-f]{64}"
IMAGE = Pattern(
    re.compile(rf"([A-Za-z0-9.-]+(:[0-9]+)?/)?{_PART}(/{_PART})*({_TAG}|({_TAG})?{_DIGEST})"),
    "Write REGISTRY/NAME:TAG or …@sha256:HEX.",
    "is not the name of an image with a tag or a digest",
)
_BEAM_OPTION = Pattern(re.compile("--.*", re.DOTALL), "Write --name=value.", "is not an option of Beam")
_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Resources(Section):
    """The resources that a component's machine or pod must have."""

    cpu: float | None = option(None, least=LEAST_CPU, help="Virtual cores.")
    memory: int | None = option(None, least=LEAST_MEMORY, form=BYTES, help="Memory in bytes.")


def check_components(path: str, names: Iterable[str], known: tuple[str, ...] = COMPONENTS) -> None:
    """Refuses unknown names of components."""
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            fix = f"Did you mean {close[0]}?" if close else f"Use: {', '.join(known)}."
            raise ConfigError(f"{path}.{name}", f"{name!r} is not a component here", fix)


def check_bucket(path: str, folder: str) -> None:
    """Refuses a folder that is not on Cloud Storage."""
    if GCS.is_folder_url(folder):
        return
    is_bucket = not is_remote(folder) and not folder.startswith(("/", ".", "~"))
    fix = f"Write {GCS.prefix}{folder}." if is_bucket else f"Write {GCS.prefix}BUCKET/FOLDER."
    raise ConfigError(path, f"{folder!r} is not a folder on Cloud Storage", fix)


def check_data_root(path: str, folder: str) -> None:
    """Refuses a folder of data that is not on Cloud Storage, or that names spans."""
    check_no_span(path, folder)
    check_bucket(path, folder)


def check_no_span(path: str, folder: str) -> None:
    """Refuses a folder of data that names spans: only the paths of the input do."""
    if SpanPath.parse(path, folder) is not None:
        problem = f"{folder!r} names a span, and the spans are folders below it"
        raise ConfigError(path, problem, "Write the folder before the first mark.")


def check_label(path: str, name: str, value: str) -> None:
    """Refuses labels that Google Cloud refuses."""
    if not _LABEL.fullmatch(name) or not _LABEL_VALUE.fullmatch(value):
        raise ConfigError(
            f"{path}.{name}",
            f"{value!r} is not a label",
            "Use a-z, 0-9, _ and -, at most 63 characters, a letter first.",
        )


@dataclass(frozen=True)
class BeamConfig(Section):
    """Options for Beam."""

    PATH: ClassVar[str] = "beam"

    options: tuple[str, ...] = option((), form=_BEAM_OPTION, help="Options of all components.")
    per_component: Mapping[str, tuple[str, ...]] = option(
        factory=dict, form=_BEAM_OPTION, help="Component -> its further options."
    )
