"""Writers of files that hold many images: WebDataset's tar files, Parquet, ArrayRecord."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, ClassVar

from shardwright.dataset.manifest import MASKS, MULTI, NONE, SINGLE, Manifest
from shardwright.dataset.tfds_files import INFO_FILE, tfds_files
from shardwright.edit.export_writer import (
    BOXES,
    FURTHER,
    IGNORED_PIXELS,
    ExportedImage,
    NewFile,
    Writer,
    extension,
    has_boxes,
    mask_png,
)
from shardwright.errors import UsageError

_LARGEST_SHARD = 500 << 20
_ROWS = 256


class WebDataset(Writer):
    """Tar files: for each image the file, `json` with labels and boxes, and a PNG for each mask."""

    HOLDS = frozenset((MASKS, MULTI, SINGLE, NONE, IGNORED_PIXELS, BOXES))

    def __init__(self, new_file: NewFile, manifest: Manifest, *, polygons: bool = False) -> None:
        super().__init__(new_file, manifest, polygons=polygons)
        self._open: dict[str, _Tar] = {}

    def add(self, image: ExportedImage) -> None:
        tar = self._open.setdefault(image.split, _Tar(self._new_file, self._split_name(image.split)))
        # A dot ends the name of a sample.
        name = f"{tar.count:08d}"
        row = {
            "key": image.key,
            "labels": list(image.labels),
            "classes": [self._classes[label] for label in image.labels],
            "boxes": [list(box[:4]) for box in image.boxes],
            "box_classes": [box.name for box in image.boxes],
        }
        files = {extension(image): image.data, "json": json.dumps(row, ensure_ascii=False).encode()}
        for label, runs in image.masks.items():
            files[f"mask{label}.png"] = mask_png(runs, image.height, image.width)
        if len(image.ignored):
            files["ignored.png"] = mask_png(image.ignored, image.height, image.width)
        tar.add(name, files)

    def finish(self) -> None:
        for tar in self._open.values():
            tar.close()
        self._write("classes.json", json.dumps(list(self._classes), ensure_ascii=False) + "\n")


@dataclass
class _Tar:
    """The tar files of a split; the next one begins when one is large enough."""

    new_file: NewFile
    split: str
    count: int = 0
    _files: int = 0
    _size: int = 0
    _tar: tarfile.TarFile | None = field(default=None)

    def add(self, name: str, files: Mapping[str, bytes]) -> None:
        if self._tar is None or self._size > _LARGEST_SHARD:
            self.close()
            path = self.new_file(f"{self.split}-{self._files:06d}.tar")
            self._tar = tarfile.open(path, "w", format=tarfile.PAX_FORMAT)  # noqa: SIM115, closed by `close`
            self._size = 0
            self._files += 1
        for ending, data in files.items():
            info = tarfile.TarInfo(f"{name}.{ending}")
            info.size, info.mode = len(data), 0o644
            self._tar.addfile(info, io.BytesIO(data))
            self._size += len(data)
        self.count += 1

    def close(self) -> None:
        if self._tar is not None:
            self._tar.close()


class Parquet(Writer):
    """`data/SPLIT-00000-of-00001.parquet`, with the columns and the description that Hugging Face's `datasets` has."""

    HOLDS = frozenset((MASKS, MULTI, SINGLE, NONE, IGNORED_PIXELS, BOXES))

    def __init__(self, new_file: NewFile, manifest: Manifest, *, polygons: bool = False) -> None:
        super().__init__(new_file, manifest, polygons=polygons)
        import pyarrow

        self._arrow = pyarrow
        image = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
        columns: dict[str, tuple[Any, Any]] = {"image": (image, {"_type": "Image"})}
        columns["key"] = (pyarrow.string(), {"dtype": "string", "_type": "Value"})
        names = {"names": list(self._classes), "_type": "ClassLabel"}
        if manifest.labels == SINGLE:
            columns["label"] = (pyarrow.int64(), names)
        elif manifest.labels == MULTI:
            columns["labels"] = (pyarrow.list_(pyarrow.int64()), {"feature": names, "_type": "Sequence"})
        self._masks = {label: f"mask_{name}" for label, name in enumerate(self._classes)}
        if manifest.labels == MASKS:
            columns |= dict.fromkeys(self._masks.values(), (image, {"_type": "Image"}))
            if manifest.ignores:
                columns["ignored"] = (image, {"_type": "Image"})
        if has_boxes(manifest):
            number = {"dtype": "float64", "_type": "Value"}
            sides = {"feature": {"feature": number, "length": 4, "_type": "Sequence"}, "_type": "Sequence"}
            columns["boxes"] = (pyarrow.list_(pyarrow.list_(pyarrow.float64(), 4)), sides)
            texts = {"feature": {"dtype": "string", "_type": "Value"}, "_type": "Sequence"}
            columns["box_classes"] = (pyarrow.list_(pyarrow.string()), texts)
        described = {"info": {"features": {name: feature for name, (_, feature) in columns.items()}}}
        schema = pyarrow.schema([(name, kind) for name, (kind, _) in columns.items()])
        self._schema = schema.with_metadata({"huggingface": json.dumps(described, ensure_ascii=False)})
        self._files: dict[str, Any] = {}
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def add(self, image: ExportedImage) -> None:
        row: dict[str, Any] = {"image": {"bytes": image.data, "path": image.key}, "key": image.key}
        row |= {"label": image.labels[0] if image.labels else None, "labels": list(image.labels)}
        for label, runs in image.masks.items():
            row[self._masks[label]] = {"bytes": mask_png(runs, image.height, image.width), "path": None}
        if len(image.ignored):
            row["ignored"] = {"bytes": mask_png(image.ignored, image.height, image.width), "path": None}
        row |= {"boxes": [list(box[:4]) for box in image.boxes], "box_classes": [box.name for box in image.boxes]}
        rows = self._rows.setdefault(image.split, [])
        rows.append({name: row.get(name) for name in self._schema.names})
        if len(rows) == _ROWS:
            self._flush(image.split)

    def _flush(self, split: str) -> None:
        from pyarrow import parquet

        if split not in self._files:
            path = self._new_file(f"data/{self._split_name(split)}-00000-of-00001.parquet")
            self._files[split] = parquet.ParquetWriter(str(path), self._schema)
        self._files[split].write_table(self._arrow.Table.from_pylist(self._rows[split], schema=self._schema))
        self._rows[split] = []

    def finish(self) -> None:
        for split, rows in self._rows.items():
            if rows:
                self._flush(split)
            self._files[split].close()


class ArrayRecord(Writer):
    """The records in ArrayRecord files, with the description by which TFDS reads them at random."""

    HOLDS = frozenset((MASKS, MULTI, SINGLE, NONE, IGNORED_PIXELS, BOXES, FURTHER))
    _TEMPLATE: ClassVar = "{SPLIT}-{SHARD_X_OF_Y}.array_record"

    def __init__(self, new_file: NewFile, manifest: Manifest, *, polygons: bool = False) -> None:
        super().__init__(new_file, manifest, polygons=polygons)
        try:
            # Not a dependency: few people need it.
            module = import_module("array_record.python.array_record_module")
        except ImportError:
            raise UsageError("--to: arrayrecord needs a package. Run `pip install array_record`.") from None
        self._writer = module.ArrayRecordWriter
        self._files: dict[str, Any] = {}
        self._counts: dict[str, list[int]] = {}

    def add(self, image: ExportedImage) -> None:
        if image.split not in self._files:
            path = self._new_file(f"{image.split}-00000-of-00001.array_record")
            # Each record can be read without its neighbors.
            self._files[image.split] = self._writer(str(path), "group_size:1")
            self._counts[image.split] = [0, 0]
        self._files[image.split].write(image.payload)
        self._counts[image.split][0] += 1
        self._counts[image.split][1] += len(image.payload)

    def finish(self) -> None:
        for file in self._files.values():
            file.close()
        splits = [
            {"name": split, "filepathTemplate": self._TEMPLATE, "shardLengths": [str(count)], "numBytes": str(size)}
            for split, (count, size) in self._counts.items()
        ]
        # The dataset's own shards may have names that TFDS has no template for.
        shards = {shard.split: replace(shard, path=shard.split) for shard in self._manifest.shards}
        files = tfds_files(replace(self._manifest, shards=tuple(shards.values())), labeled=False)
        info = {**json.loads(files[INFO_FILE]), "fileFormat": "array_record", "splits": splits}
        for name, text in {**files, INFO_FILE: json.dumps(info, indent=1, ensure_ascii=False) + "\n"}.items():
            self._write(name, text)
