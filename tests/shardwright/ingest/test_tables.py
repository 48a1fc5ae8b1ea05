"""Annotations in tables: several classes in every spelling, and further columns as typed features."""

import csv
import io
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ingesting import examples, ledger, run
from PIL import Image

from shardwright.config import LabelsConfig, parse_config
from shardwright.dataset.dataset_schema import parse_schema, render_schema
from shardwright.errors import ConfigError, UsageError
from shardwright.formats.base import Images, Request
from shardwright.formats.detect import open_source
from shardwright.ingest import IngestRecipe

KEYS = [f"{letter}.png" for letter in "abcdef"]
WANTED = dict(zip(KEYS, [["cat"], ["cat", "dog"], [], ["dog"], ["bird", "dog"], ["bird"]], strict=True))
ROWS = [(key, label) for key, labels in WANTED.items() for label in labels or [""]]


def joined(separator, quote=""):
    rows = (f"{key},{quote}{separator.join(labels)}{quote}\n" for key, labels in WANTED.items())
    return "image,label\n" + "".join(rows)


def hot(one="1", zero="0"):
    names = ("bird", "cat", "dog")
    rows = (f"{key}," + ",".join(one if n in labels else zero for n in names) for key, labels in WANTED.items())
    return "\n".join([f"image,{','.join(names)}", *rows])


@pytest.fixture
def given_input(tmp_path):
    """Writes six images and a table, and returns the configuration."""
    (tmp_path / "images").mkdir()
    for number, key in enumerate(KEYS):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(tmp_path / "images" / key)

    def write(text, classes=None, name="labels.csv", **labels):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        section = {"images": str(tmp_path / "images"), "labels": {"path": str(file), **labels}}
        return {"task": "classification", "input": {**section, **({"classes": classes} if classes else {})}}

    return write


def ingested(raw, out):
    manifest = run(raw, out)
    found = examples(out)
    names = {key: [text.decode() for text in example["image/class/text"]] for key, example in found.items()}
    labels = {key: example["image/class/label"].tolist() for key, example in found.items()}
    assert labels == {key: [manifest.classes.index(name) for name in found] for key, found in names.items()}
    assert all(found == sorted(found) for found in labels.values())
    return manifest, names


def survey_table(text, tmp_path, classes=None, keys=KEYS, **labels):
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8", newline="")
    source = open_source(
        Request(
            task="classification",
            options=LabelsConfig(path=str(file), **labels),
            classes=dict.fromkeys(classes) if isinstance(classes, (list, tuple)) else classes,
            path=str(file),
            images=Images(keys, frozenset(), size_of=lambda position: None, max_pixels=10**6),
        )
    )
    survey = source.survey()
    # Planning splits by classes reads the annotations before the shards are written.
    assert list(source.annotations()) == list(source.annotations())
    found = {}
    for annotation in source.annotations():
        found.setdefault(keys[annotation.image], []).append(annotation)
    return survey, found


# --- several classes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (joined("|"), {}),
        (joined(";"), {}),
        (joined(" "), {}),
        (joined(", ", '"'), {}),
        (joined(",", '"').replace("\n", "\r\n"), {}),
        ("\ufeff" + joined("|"), {}),
        (joined("|").replace(",", "\t"), {}),
        (joined("+"), {"separator": "+"}),
        ("image,label\n" + "".join(f"{key},{label}\n" for key, label in ROWS), {"multi_label": True}),
        ("image,label\n" + "".join(f"{key},{label}\n" for key, label in [*ROWS[::-1], *ROWS]), {"multi_label": True}),
        (hot(), {}),
        (hot("1.0", "0.0"), {}),
        (hot("1", "-1"), {}),
        (hot("TRUE", "FALSE"), {}),
    ],
)
def test_several_classes_are_the_same_in_every_spelling(tmp_path, given_input, text, options):
    manifest, names = ingested(given_input(text, **options), tmp_path / "out")
    assert manifest.labels == "multi"
    assert manifest.classes == ("bird", "cat", "dog")
    assert names == WANTED


def test_rows_of_most_images_with_several_classes_are_meant(tmp_path):
    rows = [(key, label) for key in KEYS for label in ("x", "y")]
    survey, found = survey_table("image,label\n" + "".join(f"{k},{label}\n" for k, label in rows), tmp_path)
    assert survey.labels == "multi"
    assert not survey.rejected
    assert "the rows of 6 of 6 images name different ones" in " ".join(survey.notes)
    assert [[a.label for a in annotations] for annotations in found.values()] == [[0, 1]] * 6
    survey, _ = survey_table(
        "image,label\n" + "".join(f"{k},{label}\n" for k, label in rows), tmp_path, multi_label=False
    )
    assert survey.labels == "single"
    assert {refusal.code for refusal in survey.rejected.values()} == {"conflicting_labels"}
    assert len(survey.rejected) == 6


def test_a_few_conflicts_stay_rejects_and_an_empty_field_is_no_class(tmp_path):
    survey, _ = survey_table("image,label\na.png,x\na.png,y\nb.png,x\nc.png,\n", tmp_path)
    assert survey.labels == "single"
    assert [survey.rejected[i].reason for i in (0, 2)] == [
        "t.csv, row 3: states 'y', row 2 states 'x'; an image has one class",
        "t.csv, row 5: names no class",
    ]


def test_names_of_several_words_stay_one_class(tmp_path):
    text = 'image,label\na.png,red rose\nb.png,white rose\nc.png,rose\nd.png,"Tomato, blight"\n'
    survey, _ = survey_table(text, tmp_path)
    assert (survey.labels, survey.classes) == ("single", ("Tomato, blight", "red rose", "rose", "white rose"))


def test_a_field_that_may_be_a_name_or_a_list_is_refused(tmp_path):
    text = "image,label\na.png,cat\nb.png,dog\nc.png,cat dog\nd.png,hot dog\n"
    with pytest.raises(UsageError, match=r"column 'label': 'cat dog' may be several classes.*input\.labels\.separator"):
        survey_table(text, tmp_path)
    assert survey_table(text, tmp_path, separator="")[0].classes == ("cat", "cat dog", "dog", "hot dog")
    assert survey_table(text, tmp_path, separator=" ")[0].classes == ("cat", "dog", "hot")
    assert survey_table(text, tmp_path, multi_label=False)[0].labels == "single"
    assert survey_table(text, tmp_path, classes=["cat", "dog", "hot"])[0].labels == "multi"


def test_ids_of_several_classes_are_mapped(tmp_path):
    survey, found = survey_table("Id,Target\na,16 0\nb,0\n", tmp_path, classes={"Nucleus": 0, "Cytokines": 16})
    assert (survey.labels, survey.classes) == ("multi", ("Nucleus", "Cytokines"))
    assert [a.label for a in found["a.png"]] == [1, 0]
    assert "ids by input.classes: 0 is Nucleus, 16 is Cytokines" in survey.notes


def test_a_name_next_to_an_id_must_be_that_of_the_map(tmp_path):
    classes = {"daisy": 0, "rose": 1}
    assert survey_table("image,label,class_name\na,0,daisy\nb,1,other\n", tmp_path, classes=classes)[0].classes == (
        "daisy",
        "rose",
    )
    message = r"row 3: the class 1 is 'daisy' by column 'class_name', but 'rose' by input\.classes"
    with pytest.raises(UsageError, match=message):
        survey_table("image,label,class_name\na,0,daisy\nb,1,daisy\n", tmp_path, classes=classes)


@pytest.mark.parametrize(
    ("name", "text", "labels", "message"),
    [
        ("t.csv", "image,text\na,x\n", {"multi_label": True}, r"multi_label: not used by captions"),
        ("t.csv", "image,x,y\na,1,1\n", {"separator": "|"}, r"separator: not used by label_csv"),
        ("t.jsonl", '{"image": "a", "text": "x"}\n', {"separator": "|"}, r"separator: not used by captions"),
        ("t.jsonl", '{"image": "a", "text": "x"}\n', {"features": ["a"]}, r"features: not used by captions"),
        (
            "t.jsonl",
            '{"image": "a", "text": "x"}\n',
            {"columns": {"label": "a"}},
            r"columns\.label: not used by capt",
        ),
        ("t.json", "{}", {"multi_label": False, "boxes": True}, r"multi_label: not used by coco_json"),
        ("t.json", "{}", {"features": "auto", "boxes": True}, r"features: not used by coco_json"),
    ],
)
def test_options_that_the_file_has_no_use_for_are_refused(given_input, tmp_path, name, text, labels, message):
    with pytest.raises(UsageError, match=message):
        run(given_input(text, name=name, **labels), tmp_path / "out")


# --- columns of classes ----------------------------------------------------------------------------------------------


def test_one_1_in_every_row_is_one_class(tmp_path):
    survey, found = survey_table("image_id,healthy,rust,scab\na,0,1,0\nb,1,0,0\na,0,1,0\n", tmp_path)
    assert (survey.labels, survey.classes) == ("single", ("healthy", "rust", "scab"))
    assert survey.notes[0] == "labels: label_csv, since the columns hold 0 and 1 only; every row has one 1"
    assert [a.label for a in found["a.png"]] == [1, 1]
    assert survey_table("image_id,healthy,rust\na,0,1\n", tmp_path, multi_label=True)[0].labels == "multi"
    survey, _ = survey_table("image_id,healthy,rust\na,0,1\nb,1,1\nc,0,0\n", tmp_path, multi_label=False)
    assert [survey.rejected[i].reason for i in (1, 2)] == [
        "t.csv, row 3: names several classes",
        "t.csv, row 4: names no class",
    ]


def test_input_classes_define_which_columns_are_classes_and_in_which_order(tmp_path):
    text = "image,dog,cat,age\na,1,0,7\nb,0,1,8\nc,1,x,9\n"
    survey, found = survey_table(text, tmp_path, classes=["cat", "dog"])
    assert survey.classes == ("cat", "dog")
    assert [a.label for a in found["a.png"]] == [1]
    assert survey.rejected[2].reason == "t.csv, row 4: column cat holds 'x', neither 1 nor 0"
    survey, _ = survey_table(text.replace("x", "2"), tmp_path, classes=["cat", "dog"])
    assert survey.rejected[2].reason == "t.csv, row 4: column cat holds '2', neither 1 nor 0"


def test_columns_of_which_some_are_no_classes_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"'dog', 'cat' may be one class each, but 'age' is not \(row 2 holds '7'\)"):
        survey_table("image,dog,cat,age\na,1,0,7\nb,0,1,8\n", tmp_path)
    survey, _ = survey_table("image,dog,cat,age\na,1,0,7\nb,0,1,8\n", tmp_path, features={"age": "auto"})
    assert survey.classes == ("dog", "cat")
    assert survey.features == {"image/meta/age": "int64"}


@pytest.mark.parametrize("text", ["image,dog\na,1\nb,0\n", "image,dog,cat\na,x,y\n", "image,dog,cat\na,1,-1\nb,0,1\n"])
def test_messages_for_tables_without_classes_name_what_is_missing(tmp_path, text):
    with pytest.raises(UsageError, match="expected one column for the image and one for its class"):
        survey_table(text, tmp_path)


# --- further columns -------------------------------------------------------------------------------------------------

META = """image,label,age,weight,note,scores,zip code,site
a.png,x,3,1.5,"a, b",1 2,01234,s
b.png,y,,2,,3,00001,s
c.png,x,-4,nan,"ü ""q"" u",,10000,
d.png,x,5,.5,n,4 5 6,10000,s
e.png,x,5,.5,n,4,10000,s
f.png,x,5,.5,n,4,10000,s
"""


def test_further_columns_are_typed_features(tmp_path, given_input):
    manifest = run(given_input(META, features="auto"), tmp_path / "out")
    meta = {name[11:]: kind for name, kind in manifest.features.items() if name.startswith("image/meta/")}
    assert meta == {
        "age": "int64",
        "weight": "float32",
        "note": "bytes",
        "scores": "int64",
        "zip_code": "bytes",
        "site": "bytes",
    }
    found = {
        key[0]: {name[11:]: list(values) for name, values in example.items() if name.startswith("image/meta/")}
        for key, example in examples(tmp_path / "out").items()
    }
    assert found["a"] == {
        "age": [3],
        "weight": [1.5],
        "note": [b"a, b"],
        "scores": [1, 2],
        "zip_code": [b"01234"],
        "site": [b"s"],
    }
    assert found["b"] == {"weight": [2.0], "scores": [3], "zip_code": [b"00001"], "site": [b"s"]}
    assert found["c"] == {"age": [-4], "note": ['ü "q" u'.encode()], "zip_code": [b"10000"]}


def test_without_being_asked_for_they_change_nothing(tmp_path, given_input):
    plain = "".join(f"{','.join(row[:2])}\n" for row in csv.reader(io.StringIO(META)))
    manifest = run(given_input(META), tmp_path / "meta")
    other = run(given_input(plain), tmp_path / "plain")
    assert [shard.checksum for shard in manifest.shards] == [shard.checksum for shard in other.shards]
    assert manifest.features == other.features
    assert run(given_input(META, features="none"), tmp_path / "none").recipe == manifest.recipe


def test_rows_that_differ_make_a_list_in_their_order(tmp_path, given_input):
    text = "image,label,x,y,z\n" + "".join(
        f"{row}\n" for row in ("a.png,k,1,5,p|q", "b.png,k,1,,", "a.png,k,2,5,p|q", "a.png,k,1,,", "b.png,k,1,,r|s")
    )
    raw = given_input(text, features={"x": "auto", "y": "int", "z": "texts"})
    raw["input"]["unlisted_images"] = "reject"
    run(raw, tmp_path / "out")
    found = examples(tmp_path / "out")
    assert found["a.png"]["image/meta/x"].tolist() == [1, 2, 1]
    assert found["a.png"]["image/meta/y"].tolist() == [5]
    assert found["a.png"]["image/meta/z"] == [b"p", b"q"]
    assert found["b.png"]["image/meta/x"].tolist() == [1]
    assert "image/meta/y" not in found["b.png"]
    assert found["b.png"]["image/meta/z"] == [b"r", b"s"]


CELLS = st.sampled_from(["", "1", "2", "-3"])


@given(st.lists(st.tuples(st.sampled_from(KEYS[:3]), CELLS, CELLS), max_size=12))
def test_values_are_those_of_the_rows(tmp_path_factory, rows):
    text = "image,label,x,y\n" + "".join(f"{key},k,{x},{y}\n" for key, x, y in [*rows, ("f.png", "9", "9")])
    folder = tmp_path_factory.mktemp("rows")
    survey, found = survey_table(text, folder, features={"x": "int", "y": "auto"})
    assert survey.features == {"image/meta/x": "int64", "image/meta/y": "int64"}
    for key in KEYS[:3]:
        for place, name in ((1, "x"), (2, "y")):
            values = [int(row[place]) for row in rows if row[0] == key and row[place]]
            wanted = values[:1] if len(set(values)) == 1 else values
            lists = [annotation.values.get(f"image/meta/{name}", []) for annotation in found.get(key, [])]
            assert list(chain.from_iterable(lists)) == wanted


def test_a_value_of_another_type_than_declared_rejects_its_image(tmp_path, given_input):
    text = META.replace("-4", "four")
    run(given_input(text, features={"age": "int"}), tmp_path / "out")
    row = ledger(tmp_path / "out")["c.png"]
    reason = (
        "labels.csv, row 4: column age: 'four' is not a whole number of 64 bits, which input.labels.features requires"
    )
    assert (row.status, row.code, row.reason) == ("rejected", "bad_row", reason)
    manifest = run(given_input(text, features=["age"]), tmp_path / "text")
    assert manifest.features["image/meta/age"] == "bytes"


@pytest.mark.parametrize(
    ("header", "features", "message"),
    [
        ("image,label,a b,a/b", {"*": "auto"}, r"the columns 'a b' and 'a/b' would both be the feature image/meta/a_b"),
        ("image,label,a,b", {"c": "int"}, r"features\.c: .* has no column 'c'\. It has: 'image', 'label', 'a', 'b'"),
        ("image,label,a,a", {"a": "int"}, r"has more than one column 'a'"),
        ("image,label,a,b", {"label": "text"}, r"features\.label: the column is read as image, class, mask or caption"),
        ("image,label,a,?", {"?": "auto"}, r"the column '\?' has no letter or digit for a feature"),
    ],
)
def test_columns_that_make_no_feature_are_refused(tmp_path, header, features, message):
    with pytest.raises(UsageError, match=message):
        survey_table(f"{header}\na.png,x,1,2\n", tmp_path, features=features)


def test_features_go_with_masks_too(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("id,annotation,height,width,cell_type\na,1 3,4,4,astro\na,9 2,4,4,astro\nb,,4,4,cort\n")
    source = open_source(
        Request(
            task="segmentation",
            options=LabelsConfig(path=str(file), features={"cell_type": "auto", "height": "auto"}),
            classes=None,
            path=str(file),
            images=Images(KEYS, frozenset(), size_of=lambda position: (4, 4), max_pixels=10**6),
        )
    )
    survey = source.survey()
    assert survey.features == {"image/meta/cell_type": "bytes", "image/meta/height": "int64"}
    found = [(a.image, a.label, a.text, dict(a.values)) for a in source.annotations()]
    assert found == [
        (0, 0, "1 3", {"image/meta/cell_type": ["astro"], "image/meta/height": [4]}),
        (0, 0, "9 2", {}),
        (1, -2, None, {"image/meta/cell_type": ["cort"], "image/meta/height": [4]}),
    ]


def test_the_schema_has_them_as_optional_features(tmp_path, given_input):
    manifest = run(given_input(META, features=["age", "note", "weight"]), tmp_path / "out")
    text = render_schema(manifest.task, manifest.classes, manifest.labels, manifest.features)
    schema = {feature.name: feature for feature in parse_schema(text, "x").feature}
    for name, kind in (("age", 2), ("weight", 3), ("note", 1)):
        feature = schema[f"image/meta/{name}"]
        assert feature.type == kind
        assert feature.presence.min_fraction == 0


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"multi_label": True}, r"input\.labels\.multi_label: is for a CSV of classes"),
        (
            {"path": "x", "format": "rle_csv", "multi_label": True},
            r"input\.labels\.multi_label: is for a CSV of classes",
        ),
        ({"path": "x", "separator": "a"}, r"input\.labels\.separator: 'a' may be in a class's name"),
        (
            {"path": "x", "separator": "|", "multi_label": False},
            r"input\.labels\.separator: '\|', but an image has one class",
        ),
        ({"path": "x", "features": {"a": "number"}}, r"input\.labels\.features\.a: 'number' is not known"),
        ({"path": "x", "features": {"*": "int"}}, r"input\.labels\.features\.\*: columns have different types"),
        ({"path": "x", "features": [1]}, r"input\.labels\.features\[0\]: 1 is not a text"),
        ({"features": "auto"}, r"input\.labels\.features: there is no table"),
        ({"path": "x", "format": "none"}, r"input\.labels\.path: 'x' is not used by none"),
        ({"format": "captions"}, r"input\.labels\.path: missing"),
        ({"path": "x", "key_regex": "a"}, r"input\.labels\.key_regex: 'a' has no group"),
        ({"path": "x", "key_regex": "("}, r"input\.labels\.key_regex: '\(' is not a regular expression"),
        ({"boxes": True}, r"input\.labels\.boxes: only COCO JSON and files of annotation tools have boxes"),
    ],
)
def test_options_that_make_no_sense_are_refused(labels, message):
    with pytest.raises(ConfigError, match=message):
        parse_config({"task": "classification", "input": {"images": "x", "labels": labels}}, base="/")


def test_the_options_are_part_of_the_recipe():
    labels = {"path": "x.csv", "multi_label": False, "separator": "", "features": ["a"], "key_regex": "(a)"}
    config = parse_config({"task": "classification", "input": {"images": "x", "labels": labels}}, base="/")
    recipe = IngestRecipe.of(config)
    assert IngestRecipe.from_json(recipe.to_json()) == recipe
    assert recipe.options()["input"]["labels"] == {**labels, "features": {"a": "auto"}}
