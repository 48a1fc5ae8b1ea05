"""Parquet tables: read as the same table in a CSV is, never believed about sizes, recognized with the reason."""

import csv
import datetime
import io
import json
import shutil
import sys

import pytest
import yaml
from ingesting import examples, run, tree

from shardwright.errors import UsageError
from shardwright.formats import parquet_pages
from shardwright.formats.head import Head
from shardwright.formats.parquet import ParquetFile
from shardwright.formats.registry import decide
from shardwright.formats.tables import Table
from shardwright.pipelines.cli import main

pyarrow = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

# Where so few images leave a class out of a split, which is a question of its own.
HASHED = ("--set", "split.method=hash")


def write(path, columns, metadata=None, **options):
    table = pyarrow.table(columns)
    pq.write_table(table.replace_schema_metadata(metadata) if metadata else table, path, **options)
    return str(path)


def described(**features):
    return {"huggingface": json.dumps({"info": {"features": features}})}


def texts(path):
    return list(ParquetFile.open(path).texts())


def as_parquet(path, **kinds):
    """The same table, a column of numbers as numbers."""
    header, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    for name, kind in kinds.items():
        columns[name] = pyarrow.array([None if text == "" else kind(text) for text in columns[name]])
    return write(path.with_suffix(".parquet"), columns, row_group_size=5)


def result(raw, labels, out):
    """Checksums of shards, index and ledger, and the manifest without the fingerprints of the input."""
    raw["input"]["labels"] = {**raw["input"]["labels"], "path": str(labels)}
    run(raw, out)
    files = tree(out)
    manifest = json.loads((out / "manifest.json").read_text())
    for name in ("manifest.json", "dataset_info.json"):
        files.pop(name)
    for name in ("fingerprint", "parent", "digest"):
        manifest.pop(name)
    manifest["parts"].pop("dataset_info.json")
    return files, manifest


@pytest.mark.parametrize(
    ("layout", "kinds"),
    [("image_label", {}), ("label_csv", {"age": int, "weight": float, "note": str})],
)
def test_a_table_gives_the_same_dataset_as_csv_and_as_parquet(tmp_path, image_input, layout, kinds):
    raw = image_input(tmp_path / "in", layout=layout, images=7)
    table = tmp_path / "in" / "table.csv"
    shutil.copy(raw["input"]["labels"]["path"], table)
    if kinds:
        header, *rows = table.read_text().splitlines()
        more = [f",{i},{i / 7!r},say {i}" if i % 3 else ",,," for i in range(len(rows))]
        table.write_text("\n".join([f"{header},age,weight,note", *map("".join, zip(rows, more, strict=True))]) + "\n")
        raw["input"]["labels"]["features"] = "auto"
    # The content decides what a file is, so both can have one name, and the recipes are equal, too.
    for name, file in (("csv", table), ("parquet", as_parquet(table, **kinds))):
        (tmp_path / f"by {name}").mkdir()
        shutil.move(file, tmp_path / f"by {name}/labels")
    by_csv, by_parquet = (result(raw, tmp_path / f"by {name}/labels", tmp_path / name) for name in ("csv", "parquet"))
    assert by_csv == by_parquet
    assert len(examples(tmp_path / "csv")) == 7
    assert any(name.startswith("Split-") for name in by_csv[0])


def test_fields_have_the_text_that_pandas_writes(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "text": ["a", None, 'b "c"\nd'],
            "kind": pandas.Categorical(["x", "y", "x"]),
            "number": [1, 2, 3],
            "sparse": [1.0, float("nan"), 3.5],
            "flag": [True, False, True],
            "day": [datetime.date(2026, 1, 2)] * 3,
        },
        index=[4, 5, 6],
    )
    frame["narrow"] = frame["sparse"].astype("float32") / 3
    frame.to_parquet(tmp_path / "a.parquet")
    header, *rows = csv.reader(io.StringIO(frame.to_csv(index=False)))
    table = Table.open(str(tmp_path / "a.parquet"))
    assert table.header == (*header, "")
    assert [row.fields[:-1] for row in table.rows()] == rows
    assert [(row.line, row.fields[-1]) for row in table.rows()] == [(1, "4"), (2, "5"), (3, "6")]


def test_classes_have_the_names_that_datasets_describes(tmp_path):
    label = {"names": ["cat", "dog"], "_type": "ClassLabel"}
    path = write(tmp_path / "a.parquet", {"file_name": ["a", "b", "c"], "label": [1, 0, -1]}, described(label=label))
    assert texts(path) == [["a", "dog"], ["b", "cat"], ["c", ""]]
    for features in ("no JSON", "[]", '{"info": []}', '{"info": {"features": {"label": {"_type": "ClassLabel"}}}}'):
        write(tmp_path / "a.parquet", {"file_name": ["a"], "label": [1]}, {"huggingface": features})
        assert texts(path) == [["a", "1"]]


OBJECTS = [
    {"bbox": [[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 5.0, 5.0]], "categories": [1, 0]},
    {"bbox": [], "categories": []},
    {"bbox": [[2.0, 2.0, 2.0, 2.0]], "categories": [0]},
]
CATEGORIES = {"names": ["cat", "dog"], "_type": "ClassLabel"}
NUMBERS = {"feature": {"feature": {"dtype": "float64", "_type": "Value"}, "_type": "Sequence"}, "_type": "Sequence"}


@pytest.mark.parametrize("by_object", [False, True])
def test_metadata_parquet_of_an_image_folder_has_boxes(tmp_path, image_input, monkeypatch, by_object):
    image_input(tmp_path / "in", layout="class_folders", images=3)
    images = sorted((tmp_path / "in").rglob("*.jpg"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for image in images:
        shutil.copy(image, tmp_path / "data")
    objects, feature = OBJECTS, {"feature": {"bbox": NUMBERS, "categories": CATEGORIES}, "_type": "Sequence"}
    if by_object:
        keys = zip(*(list(row.values()) for row in OBJECTS), strict=True)
        objects = [
            [{"bbox": box, "categories": one} for box, one in zip(boxes, ones, strict=True)]
            for boxes, ones in zip(*keys, strict=True)
        ]
        feature = {"feature": {"bbox": NUMBERS["feature"], "categories": CATEGORIES}, "_type": "List"}
    write(
        tmp_path / "data/metadata.parquet",
        {"file_name": [image.name for image in images], "objects": objects},
        described(objects=feature),
    )
    assert main(["init", "data", "--out", "c.yaml", *HASHED]) == 0
    assert yaml.safe_load((tmp_path / "c.yaml").read_text())["input"]["labels"]["format"] == "label_jsonl"
    assert main(["ingest", "c.yaml", "--out", "out"]) == 0
    found = examples(tmp_path / "out")
    names = [list(found[image.name].get("image/object/class/text", [])) for image in images]
    assert names == [[b"dog", b"cat"], [], [b"cat"]]
    size = found[images[0].name]["image/width"][0]
    assert found[images[0].name]["image/object/bbox/xmax"].tolist() == pytest.approx([4 / size, 5 / size])


def test_detection_states_the_reason(tmp_path, image_input, monkeypatch, capsys):
    raw = image_input(tmp_path / "in", layout="label_csv", images=4)
    table = tmp_path / "in" / "labels.csv"
    shutil.move(raw["input"]["labels"]["path"], table)
    as_parquet(table)
    table.unlink()
    monkeypatch.chdir(tmp_path)
    assert main(["init", "in", "--out", "c.yaml", *HASHED]) == 0
    output = "".join(capsys.readouterr())
    assert "labels: label_csv, since labels.parquet has no column of masks" in output
    assert "labels.parquet: image from column" in output
    assert yaml.safe_load((tmp_path / "c.yaml").read_text())["input"]["labels"]["path"].endswith("labels.parquet")


def test_a_table_with_images_inside_is_no_table_of_labels(tmp_path):
    kind = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    images = pyarrow.array([{"bytes": b"x", "path": "a.jpg"}], kind)
    path = write(tmp_path / "a.parquet", {"image": images, "label": [1]})
    with pytest.raises(UsageError, match="holds Parquet with the images in it, .*Give the file as input.images"):
        decide("auto", Head.read(path))


def test_without_pyarrow_the_message_has_the_command(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", {"image": ["a"], "label": ["b"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pyarrow is not installed. Install it: pip install 'shardwright\[parquet\]'"):
        Table.open(path)


def test_a_pyarrow_that_runs_code_from_files_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", {"image": ["a"], "label": ["b"]})
    monkeypatch.setattr(pyarrow, "__version__", "14.0.0")
    monkeypatch.setitem(sys.modules, "pyarrow_hotfix", None)
    with pytest.raises(UsageError, match=r"CVE-2023-47248.*pip install pyarrow-hotfix"):
        Table.open(path)


# --- hostile files


def sound(tmp_path, rows=200):
    columns = {"image": [f"image {i}" for i in range(rows)], "label": ["cat"] * rows}
    return tmp_path / "a.parquet", write(tmp_path / "a.parquet", columns, compression="gzip")


def test_a_file_that_is_cut_off_or_changed_anywhere_ends_in_one_message(tmp_path):
    file, path = sound(tmp_path, 30)
    data = file.read_bytes()
    broken = [data[:cut] for cut in range(4, len(data), 97)]
    broken += [data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :] for at in range(4, len(data), 13)]
    messages = []
    for changed in broken:
        file.write_bytes(changed)
        try:
            texts(path)  # A changed letter of a text is not noticed.
        except UsageError as error:
            messages.append(str(error))
    assert len(messages) > len(broken) / 2
    assert not [message for message in messages if not message.startswith(path) or "\n" in message]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:9], "it has 9 bytes, fewer than an empty Parquet file"),
        (lambda data: data[:-1], "does not end as a Parquet file does, so it is cut off"),
        (lambda data: data[:-4] + b"PARE", "it is encrypted"),
        (lambda data: data[:-8] + b"\xff\xff\xff\x7f" + data[-4:], "its footer states 2,147,483,647 bytes"),
        (lambda data: data[:-8] + bytes(4) + data[-4:], "its footer states 0 bytes"),
    ],
)
def test_a_broken_footer_is_named(tmp_path, change, message):
    file, path = sound(tmp_path)
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(UsageError, match=message):
        Table.open(path)


def test_a_table_without_rows_or_columns_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"a.parquet: has 0 rows. Give a table with rows"):
        Table.open(write(tmp_path / "a.parquet", {"image": pyarrow.array([], pyarrow.string())}))
    pq.write_table(pyarrow.table({}), tmp_path / "b.parquet")
    with pytest.raises(UsageError, match=r"b.parquet: has no columns"):
        Table.open(str(tmp_path / "b.parquet"))


def test_columns_that_are_no_fields_are_named(tmp_path):
    path = write(tmp_path / "a.parquet", {"image": ["a"], "more": [[1, 2]], "label": ["b"]})
    with pytest.raises(UsageError, match=r"the column 'more' contain lists or structures.*drop\(columns=\['more'\]\)"):
        texts(path)
    path = write(tmp_path / "b.parquet", {"image": ["a"], "raw": [b"\xff\xfe"]})
    with pytest.raises(UsageError, match=r"the column 'raw' \(.*\) contains no text .*in rows 1 to 1"):
        texts(path)


def test_a_page_that_unpacks_to_more_than_is_read_is_refused_unread(tmp_path, monkeypatch):
    """Gigabytes of one letter have some kilobytes in a file."""
    path = write(
        tmp_path / "a.parquet", {"image": ["a" * (1 << 22)], "label": ["b"]}, compression="zstd", use_dictionary=False
    )
    assert (tmp_path / "a.parquet").stat().st_size < 1 << 14
    assert texts(path)
    monkeypatch.setattr("shardwright.formats.parquet._MOST_PAGE", 1 << 20)
    monkeypatch.setattr("pyarrow.parquet.ParquetFile.iter_batches", None)
    with pytest.raises(UsageError, match=r"a page of its column 'image' unpacks to 4,194,\d+ bytes, and at most 1,048"):
        texts(path)


def test_batches_are_small_where_pages_are_large(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", {"image": [str(i) * 999 for i in range(50)]}, use_dictionary=False)
    asked = []
    real = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda self, rows, **given: asked.append(rows) or real(self, rows, **given)
    )
    monkeypatch.setattr("shardwright.formats.parquet._BATCH", 1 << 20)
    assert len(texts(path)) == 50
    assert 1 <= asked[0] < 20


def test_a_text_that_is_stored_once_is_in_memory_once(tmp_path, monkeypatch):
    """A dictionary with one long text, and many rows that refer to it."""
    path = write(tmp_path / "a.parquet", {"image": ["x" * 100_000] * 1000})
    fields = texts(path)
    assert len(fields) == 1000
    assert len({id(row[0]) for row in fields}) == 1
    monkeypatch.setattr("shardwright.storage.limits.LONGEST_LINE", 99_999)
    with pytest.raises(UsageError, match="the column 'image' has a field of more than 99,999 characters"):
        texts(path)


def test_more_rows_or_values_than_a_file_can_hold_are_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", {"image": ["a"] * 100_000}, compression="zstd")
    assert (tmp_path / "a.parquet").stat().st_size < 100_000
    with pytest.raises(UsageError, match=r"it states 100,000 rows in [\d,]+ bytes"):
        texts(path)
    path = write(tmp_path / "b.parquet", {"image": ["a"], "label": [[0] * 100_000]}, compression="zstd")
    with pytest.raises(UsageError, match=r"its column 'label.list.\w+' states 100,001 values in [\d,]+ bytes"):
        list(ParquetFile.open(path).rows(["image", "label"]))


def test_headers_of_pages_are_not_believed(tmp_path):
    def scan(data, stop=None):
        return parquet_pages.scan_pages(io.BytesIO(data), 0, len(data) if stop is None else stop)

    # A data page of 10 bytes, 7 in the file, with 5 values: fields 1, 2, 3 and the structure 5.
    page = bytes([0x15, 0, 0x15, 20, 0x15, 14, 0x2C, 0x15, 10, 0, 0])
    assert scan(page + bytes(7)) == (10, 5)
    assert scan((page + bytes(7)) * 2) == (10, 10)
    for data, message in [
        (page + bytes(3), "a page ends at byte 18, after its column at byte 14"),
        (page[:6], "the header of the page at byte 0 is damaged"),
        (bytes([0x15, 0, 0]), "states no size"),
        (page[:3] + bytes([19]) + page[4:] + bytes(7), "states no size, or one below 0"),
        (bytes([0x1C] * 20), "damaged"),
        (bytes([0x15]) + b"\xff" * 20, "damaged"),
        (bytes([0x19, 0]), "damaged"),
    ]:
        with pytest.raises(parquet_pages.PageError, match=message):
            scan(data)
