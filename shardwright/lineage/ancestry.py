"""The ancestors of an artifact: follows its `lineage.json` from child to parent by digest.

A parent is identified by its content, never by its path. An artifact has a fingerprint, a dataset also the digest of
its manifest, and a model the hash of its weights. Artifacts are untrusted: contradictions in one are reported as
problems.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

from shardwright.dataset.manifest import MANIFEST_FILE, Manifest
from shardwright.errors import DatasetError, NotFound, OtherLayoutError, ShardwrightError, UsageError
from shardwright.lineage.blessing import BLESSING_FILE, model_digest, parse_blessing
from shardwright.lineage.record import LINEAGE_FILE, files_digest, parse_lineage
from shardwright.storage import buckets, hash_file, is_folder, is_remote, list_names, map_threads, read_bytes, readers
from shardwright.storage.fingerprint import checksum_matches, fingerprint
from shardwright.storage.paths import split_url

MODEL, EVALUATION = "model", "evaluation"
# They have the fingerprint of the model that they belong to, so it does not identify them.
_NAMED_AFTER_OTHERS = (EVALUATION, "blessing", "training")
_DATASETS = ("ingest", "transform")
# Files of a model with the weights that another training may begin with.
_SERVED = "Format-Serving"
_WEIGHTS = ("assets.extra/model.keras", f"{_SERVED}/assets.extra/model.keras")
INPUT, WARM_START, _SOURCE = "input", "warm_start", "source-"
# Parents that are files from outside, whose paths are not recorded.
_OUTSIDE = ("schema",)
# The file that every folder of a run on this machine has, and the folders in it that contain artifacts.
METADATA_FILE = "metadata.sqlite"
ARTIFACTS, PUSHED = "artifacts", "pushed"
# Below these an artifact keeps only its own files.
_INSIDE = re.compile(r"Split-.*|Format-.*|\.system|variables|index|ledger|origins|assets")


@dataclass(frozen=True)
class Artifact:
    """An artifact as its own files describe it.

    Attributes:
        place: folder or URL.
        kind: `ingest`, `transform`, `model`, `evaluation`, ...
        fingerprint: its own.
        digest: of its manifest, where it is a dataset; else empty.
        parents: role -> fingerprint or digest of its sources.
        recipe: the options that shaped it.
        versions: package -> version.
        image: the container image that it was made in; empty if unknown.
        listed: see `write_lineage`.
        problems: contradictions and damage, a sentence each.
    """

    place: str
    kind: str
    fingerprint: str
    digest: str = ""
    parents: Mapping[str, str] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    image: str = ""
    listed: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def links(self) -> dict[str, str]:
        """Its parents that are artifacts of ours: role -> fingerprint or digest."""
        return {
            role: value
            for role, value in sorted(self.parents.items())
            # With several sources, the input is a hash of all of them.
            if role not in _OUTSIDE and not (role == INPUT and (self._derived or self.kind == "ingest"))
        }

    @property
    def data(self) -> str:
        """Fingerprint of the external data that it was made of; empty where it was made of artifacts."""
        return (
            self.listed.get(INPUT, self.parents.get(INPUT, "")) if self.kind == "ingest" and not self._derived else ""
        )

    @property
    def _derived(self) -> bool:
        """True if it was made of other datasets' records (`shardwright.edit.derive`)."""
        return any(role.startswith(_SOURCE) for role in self.parents)


def read_artifact(place: str, *, whole: bool = True) -> Artifact:
    """Reads the files of an artifact that describe it, and compares them.

    Args:
        place: folder or URL with a `lineage.json` or a `manifest.json`.
        whole: also read all files of a model. Those of a dataset are for `shardwright verify`.

    Raises:
        DatasetError: it has neither.
    """
    problems: list[str] = []
    row = _lineage_row(place, problems)
    manifest = _manifest(place, problems)
    if row is None and manifest is None:
        found = f" {'; '.join(problems)}." if problems else ""
        raise DatasetError(f"{place}: has no {LINEAGE_FILE}, so its sources are unknown.{found}")
    if row is None:
        assert manifest is not None
        parents = {} if manifest.parent is None else {INPUT: manifest.parent}
        row = {
            "kind": manifest.kind,
            "fingerprint": manifest.fingerprint,
            "parents": parents,
            "recipe": manifest.recipe,
        }
    elif manifest is not None:
        problems += _disagreements(row, manifest)
    elif row["kind"] in _DATASETS and not problems:
        problems.append(f"{MANIFEST_FILE} is missing: the dataset was not finished, or is not whole any more")
    if whole:
        problems += _changed_files(place, row.get("files", ""))
    return Artifact(
        place,
        row["kind"],
        row["fingerprint"],
        manifest.digest if manifest else "",
        row["parents"],
        row["recipe"],
        row.get("versions", {}),
        row.get("image", ""),
        row.get("listed", {}),
        tuple(problems),
    )


class Family:
    """All artifacts in some folders, by their digests and fingerprints.

    Args:
        places: folders and URLs with a `lineage.json` or a `manifest.json`; unreadable ones are skipped.
    """

    def __init__(self, places: Iterable[str]) -> None:
        self.artifacts: dict[str, Artifact] = {}
        self._known: dict[str, list[Artifact]] = {}
        self._weights: dict[str, list[Artifact]] | None = None
        for place in sorted(set(places), key=lambda place: (place.count("/"), place)):
            try:
                artifact = read_artifact(place, whole=False)
            except ShardwrightError:
                continue
            self.artifacts[place] = artifact
            names = (
                {artifact.digest} if artifact.kind in _NAMED_AFTER_OTHERS else {artifact.digest, artifact.fingerprint}
            )
            for name in names - {""}:
                self._known.setdefault(name, []).append(artifact)

    def find(self, role: str, value: str) -> Artifact | None:
        """Returns the artifact of a parent, of equal ones that with the fewest problems; `None` if not found."""
        known = self._by_weights() if role == WARM_START else self._known
        return min(known.get(value, ()), key=lambda one: len(one.problems), default=None)

    def ancestors(self, start: Artifact, without: Collection[str] = ()) -> Iterator[Artifact]:
        """Yields an artifact and its ancestors, each once, children before parents; ignores the roles `without`."""
        seen: set[str] = set()
        left = [start]
        while left:
            artifact = left.pop(0)
            if artifact.place not in seen:
                seen.add(artifact.place)
                yield artifact
                links = [link for link in artifact.links.items() if link[0] not in without]
                left += [one for role, value in links if (one := self.find(role, value)) is not None]

    def evaluations(self, model: Artifact) -> list[Artifact]:
        """Returns the evaluations of a model, each once."""
        of_it = {
            canonical: one
            for one in self.artifacts.values()
            if one.kind == EVALUATION and one.parents.get(MODEL) == model.fingerprint
            for canonical in [tuple(sorted(one.parents.items()))]
        }
        return list(of_it.values())

    def _by_weights(self) -> dict[str, list[Artifact]]:
        if self._weights is None:
            self._weights = {}
            for artifact in self.artifacts.values():
                for name in _WEIGHTS if artifact.kind == MODEL else ():
                    found = hash_file(os.path.join(artifact.place, name))
                    if found is not None:
                        self._weights.setdefault(found.content_id.hex(), []).append(artifact)
        return self._weights


def family_of(path: str, search: Iterable[str] = ()) -> tuple[Artifact, Family]:
    """Returns an artifact, and all artifacts in its run's folder or its parent folder, and in further folders.

    Models are not read to the end.

    Args:
        path: the artifact: its folder or URL, a push folder or a run's folder (for the blessed model).
        search: further folders and URLs, which are searched to the bottom.

    Raises:
        DatasetError: there is no artifact.
    """
    place = artifact_at(path)
    start = read_artifact(place, whole=False)
    return start, Family([place, *known_places(place, search)])


def artifact_at(path: str) -> str:
    """Returns the folder of the artifact that a path means: its own, or that of the blessed model.

    Raises:
        DatasetError: there is none.
    """
    root = path.rstrip("/") if is_remote(path) else os.path.abspath(path)
    if contains(root, LINEAGE_FILE) or contains(root, MANIFEST_FILE):
        return root
    for folder in (root, f"{root}/pushed"):
        try:
            named = parse_blessing(read_bytes(f"{folder}/{BLESSING_FILE}")).model
        except (OSError, ValueError):
            continue
        if contains(f"{folder}/{named}", LINEAGE_FILE):
            return f"{folder}/{named}"
    if not is_folder(root):
        raise NotFound(f"{root}: there is no such folder. Check the path.")
    raise DatasetError(
        f"{root}: has no {LINEAGE_FILE} and no blessed model, so its sources are unknown. Give a model, a dataset or "
        "the folder of a run that shardwright made."
    )


def _lineage_row(place: str, problems: list[str]) -> dict[str, Any] | None:
    try:
        text = read_bytes(f"{place}/{LINEAGE_FILE}").decode("utf-8")
    except FileNotFoundError:
        problems.append(f"{LINEAGE_FILE} is missing")
        return None
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{LINEAGE_FILE} cannot be read ({error})")
        return None
    try:
        row = parse_lineage(text)
    except ValueError as error:
        problems.append(f"{LINEAGE_FILE} does not contain a lineage ({error})")
        return None
    if not checksum_matches(text):
        problems.append(f"{LINEAGE_FILE} was changed after it was written: its digest does not match")
    return row


def _manifest(place: str, problems: list[str]) -> Manifest | None:
    try:
        return Manifest.from_json(read_bytes(f"{place}/{MANIFEST_FILE}").decode("utf-8"))
    except FileNotFoundError:
        return None
    except OtherLayoutError as error:
        problems[:] = [str(error)]  # That version's digests are others, too.
        return None
    except (OSError, UnicodeDecodeError, DatasetError) as error:
        problems.append(str(error))
        return None


def _disagreements(row: Mapping[str, Any], manifest: Manifest) -> Iterator[str]:
    recorded = {"fingerprint": row["fingerprint"], "parent": row["parents"].get(INPUT), "kind": row["kind"]}
    recorded["recipe_fingerprint"] = fingerprint(row["recipe"])
    for name, value in recorded.items():
        if value != getattr(manifest, name):
            yield (
                f"{LINEAGE_FILE} and {MANIFEST_FILE} do not agree: {name} {str(value)[:12]} and "
                f"{str(getattr(manifest, name))[:12]}"
            )


def _changed_files(place: str, files: str) -> Iterator[str]:
    # A Trainer's has the files of the model one folder below.
    below = f"{place}/{_SERVED}"
    served = below if contains(below, LINEAGE_FILE) else place
    if files and files != files_digest(served):
        yield "its files are not those that it was made with"
    folder, name = os.path.split(place)
    if is_remote(place):
        return
    try:
        blessing = parse_blessing(read_bytes(f"{folder}/{BLESSING_FILE}"))
        wrong = blessing.model == name and blessing.digest != model_digest(place)
    except (OSError, ValueError):
        return
    if wrong:
        yield f"its files are not those that {BLESSING_FILE} blessed"


def run_root_of(place: str) -> str | None:
    """Returns the folder of the run that contains a place on this machine; `None` if there is no such run."""
    folder = place
    while not is_remote(folder) and folder != os.path.dirname(folder):
        if os.path.isfile(os.path.join(folder, METADATA_FILE)):
            return folder
        folder = os.path.dirname(folder)
    return None


def known_places(place: str, search: Iterable[str] = ()) -> Iterator[str]:
    """Yields the folders of artifacts that may be related to one: in its run or its parent folder, and further ones.

    Args:
        place: the folder of the artifact.
        search: further folders and URLs.

    Raises:
        UsageError: one of them is not a folder.
    """
    run_root = run_root_of(place)
    if run_root is not None:
        for folder in (ARTIFACTS, PUSHED):
            yield from find_artifacts(f"{run_root}/{folder}")
    else:
        parent = place.rpartition("/")[0]
        siblings = [f"{parent}/{name}" for name in list_names(parent)]

        def is_artifact(folder: str) -> bool:
            return contains(folder, LINEAGE_FILE) or contains(folder, MANIFEST_FILE)

        yield from compress(siblings, map_threads(is_artifact, siblings, readers(place)))
    for folder in search:
        folder = folder.rstrip("/") if is_remote(folder) else os.path.abspath(folder)
        if not is_folder(folder):
            raise UsageError(f"{folder}: is not a folder. Name one that contains artifacts.")
        yield from find_artifacts(folder)


def find_artifacts(folder: str) -> Iterator[str]:
    """Yields every artifact below a folder, and the folder itself if it is one; links are not followed."""
    if is_remote(folder):
        scheme, bucket, _ = split_url(folder)
        for info in buckets.list_objects(f"{folder}/"):
            if info.name.rpartition("/")[2] == LINEAGE_FILE:
                yield f"{scheme}://{bucket}/{info.name.rpartition('/')[0]}"
        return
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _INSIDE.fullmatch(name))
        if LINEAGE_FILE in files or MANIFEST_FILE in files:
            yield here


def find_files(folder: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Yields every file below a folder or a URL whose name ends in a certain way, but for the files of datasets."""
    if is_remote(folder):
        scheme, bucket, _ = split_url(folder)
        for info in buckets.list_objects(f"{folder}/"):
            if info.name.endswith(endings):
                yield f"{scheme}://{bucket}/{info.name}"
        return
    for here, folders, files in os.walk(folder):
        folders[:] = [] if MANIFEST_FILE in files else sorted(folders)
        yield from (os.path.join(here, name) for name in sorted(files) if name.endswith(endings))


def contains(place: str, name: str) -> bool:
    """Returns whether a file is in a folder or below a URL."""
    file = f"{place}/{name}"
    return buckets.stat(file) is not None if is_remote(file) else os.path.isfile(file)
