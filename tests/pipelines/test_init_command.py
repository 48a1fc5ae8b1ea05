"""`shardwright init`: the configuration that it writes ingests as it is, and nothing in it is left to detect."""

import json
import shlex
from argparse import Namespace

import layouts
import pytest
import yaml
from PIL import Image
from stored import check_stored

from shardwright.config import load_config
from shardwright.dataset.manifest import Manifest
from shardwright.errors import UsageError
from shardwright.ingest.recipe import IngestRecipe, locate
from shardwright.ingest.survey import survey_input
from shardwright.pipelines.cli import main
from shardwright.pipelines.commands.settings import settings_of
from shardwright.pipelines.init.hypotheses import Hypothesis, propose
from shardwright.pipelines.init.inventory import Inventory
from shardwright.pipelines.init.write_project import pipeline_name


def init(*arguments):
    return main(["init", *map(str, arguments)])


def manifest_of(folder):
    return Manifest.from_json((folder / "out/manifest.json").read_text())


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", layouts.LAYOUTS)
def test_the_written_configuration_ingests_without_a_change(here, name):
    layout = layouts.LAYOUTS[name]
    (here / "data").mkdir()
    layout.draw(here / "data")
    given = [] if layout.labels is None else [f"data/{layout.labels}"]
    # A hash, which such small sets would not get, keeps the stored bytes.
    given += [] if name in ("class folders below splits", "Pascal VOC") else ["--set", "split.method=hash"]
    given += ["--set", "input.labels.format=none"] if name == "images alone" else []
    assert init("data", *given, "--out", "c.yaml") == 0
    text = (here / "c.yaml").read_text()
    assert text.startswith("# Written by `shardwright init data")
    labels = yaml.safe_load(text)["input"]["labels"]
    assert labels["format"] == layout.format
    assert "auto" not in labels.values()
    config = load_config("c.yaml")
    assert {key: getattr(config.input.labels, key) for key in layout.found or {}} == (layout.found or {})
    assert main(["ingest", "c.yaml", "--out", "out", "--workers", "1"]) == 0
    manifest = manifest_of(here)
    assert manifest.totals["rejected"] == 0
    assert manifest.totals["written"] >= layouts.COUNT
    # Classes of colors are in the order of their numbers.
    assert set(manifest.classes) == set(layout.classes)
    assert_reads_as_detected(config, here)
    check_stored(f"layout: {name}", here / "out")


def class_folders(here, counts):
    """A folder for each class."""
    for name, count in counts.items():
        (here / "data" / name).mkdir(parents=True)
        for number in range(count):
            Image.new("RGB", (48, 32), (number, ord(name[0]), 7)).save(here / "data" / name / f"{number:03d}.png")


@pytest.mark.parametrize(
    ("counts", "method"),
    [
        # By hash, one of three splits gets no image, or none of a class.
        ({"ant": 4, "bee": 4}, "stratified"),
        ({"ant": 60, "bee": 5}, "stratified"),
        ({"ant": 80, "bee": 80}, "hash"),
        ({"ant": 400, "bee": 12}, "stratified"),
    ],
)
def test_no_split_and_no_class_is_left_out_that_has_images_enough(here, capsys, counts, method):
    class_folders(here, counts)
    assert init("data", "--out", "c.yaml") == 0
    assert load_config("c.yaml").split.method == method
    assert ("stratified: a hash would leave no " in capsys.readouterr().out) == (method == "stratified")
    assert main(["ingest", "c.yaml", "--out", "out", "--workers", "1"]) == 0
    assert "no image of" not in "".join(capsys.readouterr())
    assert {name for name in manifest_of(here).totals if name.startswith("records/")} == {
        "records/eval", "records/test", "records/train"
    }  # fmt: skip


def coco(here, name, numbers):
    """A COCO file of images with these numbers, each with a square of one of two classes."""
    from PIL import Image

    (here / "images").mkdir(exist_ok=True)
    images = [{"id": n, "file_name": f"{n}.jpg", "height": 32, "width": 48} for n in numbers]
    for image in images:
        Image.new("RGB", (48, 32), (image["id"] * 9, 0, 99)).save(here / "images" / image["file_name"])
    square = {"bbox": [2, 2, 10, 10], "area": 100, "iscrowd": 0, "segmentation": [[2, 2, 12, 2, 12, 12, 2, 12]]}
    marked = [{"id": n, "image_id": n, "category_id": 1 + n % 2, **square} for n in numbers]
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    text = json.dumps({"images": images, "annotations": marked, "categories": categories})
    (here / name).write_text(text)


def test_a_file_of_annotations_for_each_split(here, capsys):
    # Nothing in the names of these files states a split.
    coco(here, "first.json", range(8))
    coco(here, "second.json", range(8, 12))
    assert init("images", "train=first.json", "eval=second.json", "--out", "c.yaml") == 0
    text = (here / "c.yaml").read_text()
    assert "`shardwright init images train=first.json eval=second.json`" in text
    config = load_config("c.yaml")
    assert config.split.method == "predefined"
    assert main(["ingest", "c.yaml", "--out", "out", "--workers", "1"]) == 0
    totals = manifest_of(here).totals
    assert (totals["records/train"], totals["records/eval"]) == (8, 4)
    capsys.readouterr()
    # Without splits they are read together.
    assert init("images", "first.json", "second.json", "--out", "d.yaml") == 0
    assert load_config("d.yaml").split.method == "stratified"  # A hash leaves a split empty.


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["train=first.json", "second.json"], "SPLIT=FILE for each file, or for none"),
        (["train=first.json", "train=second.json"], "a split has two files"),
        (["train=none.json", "eval=first.json"], "none.json does not exist"),
    ],
)
def test_wrong_files_of_splits_are_refused(here, capsys, labels, message):
    coco(here, "first.json", range(2))
    assert init("images", *labels) == 2
    assert message in capsys.readouterr().err


def assert_reads_as_detected(config, here):
    """The written options read the data as the detected ones did."""
    written = yaml.safe_load((here / "c.yaml").read_text())
    path = written["input"]["labels"].get("path")
    classes = written["input"].get("classes") or {}
    colored = isinstance(classes, dict) and any(isinstance(value, str) for value in classes.values())
    boxes = {"boxes": True} if config.input.labels.boxes else {}
    alone = {"format": "none"} if config.input.labels.format == "none" else {}
    source = {"images": written["input"]["images"], "labels": {**({"path": path} if path else {}), **boxes, **alone}}
    source |= {"classes": classes} if colored else {}
    (here / "auto.yaml").write_text(yaml.safe_dump({"task": config.task, "input": source}))
    surveys = [survey_input(IngestRecipe.of(one), locate(one)) for one in (load_config("auto.yaml"), config)]
    detected, spelled = surveys
    assert spelled.survey.classes == detected.survey.classes
    assert list(spelled.listing.keys) == list(detected.listing.keys)
    assert spelled.survey.listed == detected.survey.listed
    assert spelled.source.dialect == detected.source.dialect or config.input.labels.format in (
        "mask_images",
        "pascal_voc",
    )
    assert list(spelled.source.annotations()) == list(detected.source.annotations())


def test_splits_that_the_input_has_are_taken(here):
    (here / "data").mkdir()
    layouts.split_folders(here / "data")
    assert init("data") == 0
    config = load_config("data.yaml")
    assert config.split.method == "predefined"
    assert config.split.names == ("eval", "train")
    assert config.evaluator.split == "eval"


@pytest.mark.parametrize(("column", "task"), [("label", "classification"), ("rle", "segmentation")])
def test_a_table_below_spans_is_detected(here, column, task):
    for day in (1, 2):
        (here / f"day{day}/images").mkdir(parents=True)
        for i in range(4):
            Image.new("RGB", (8, 6), (9 * i, day, 3)).save(here / f"day{day}/images/{i}.png")
        rows = [f"image,{column}", *(f"{i}.png,{2 + i % 2 if column == 'label' else '1 2'}" for i in range(4))]
        (here / f"day{day}/table.csv").write_text("\n".join(rows))
        (here / f"day{day}/names.json").write_text('{"2": "two", "3": "three"}')
    settings = ["--set", "input.span=1"] + (["--set", "input.labels.rle.order=row"] if column == "rle" else [])
    assert init("day{SPAN}/images", "day{SPAN}/table.csv", "--out", "c.yaml", *settings) == 0
    config = load_config("c.yaml")
    assert (config.task, config.input.span, config.input.labels.path) == (task, "1", "day{SPAN}/table.csv")
    assert column == "rle" or dict(config.input.classes) == {"two": 2, "three": 3}
    # The folder of the newest span shows what the folders of all of them contain.
    assert init("day{SPAN}", "--out", "d.yaml", *settings) == 0
    found = load_config("d.yaml")
    assert (found.input, found.task) == (config.input, config.task)


@pytest.mark.parametrize("name", ["class folders", "Kaggle, train and test", "label CSV, named"])
def test_no_path_of_this_machine_is_written(here, name):
    layout = layouts.LAYOUTS[name]
    (here / "data").mkdir()
    layout.draw(here / "data")
    (here / "lists").mkdir()
    lists = {"train": str(here / "lists/train.txt"), "test": str(here / "lists/test.txt")}
    images = sorted(path for path in (here / "data").rglob("*") if path.suffix in (".jpg", ".png"))
    for number, split in enumerate(lists):
        (here / f"lists/{split}.txt").write_text("".join(f"{path.name}\n" for path in images[number::2]))
    given = [here / "data", *([here / "data" / layout.labels] if layout.labels else [])]
    further = ["--set", f"split.from_lists={json.dumps(lists)}", "--set", "split.unlisted_images=train"]
    assert init(*given, *further, "--set", f"run.root={here}/runs", "--out", "c.yaml") == 0
    assert str(here) not in (here / "c.yaml").read_text()
    assert load_config("c.yaml").split.from_lists == {"train": "lists/train.txt", "test": "lists/test.txt"}


def test_other_image_formats_are_converted(here):
    (here / "data").mkdir()
    layouts.gifs(here / "data")
    assert init("data") == 0
    assert load_config("data.yaml").images.unsupported_formats == "png"


def test_two_readings_end_the_call_with_both_and_the_option(here, capsys):
    (here / "data").mkdir()
    layouts.mask_indices(here / "data")
    layouts.lines(here / "data/train.csv", "ImageId,ClassId,EncodedPixels", f"i0.jpg,1,{layouts.runs(0, 0)}")
    assert init("data") == 2
    error = capsys.readouterr().err
    assert "--set input.labels.path=data/masks" in error
    assert "--set input.labels.path=data/train.csv" in error
    assert not (here / "data.yaml").exists()
    assert init("data", "--set", "input.labels.path=data/masks") == 0
    assert load_config("data.yaml").input.labels.format == "mask_images"


def test_every_value_that_is_set_is_in_the_file(here):
    for number in range(4):
        layouts.image(here / f"data/{'ab'[number % 2]}/i{number}.jpg", number)
    given = {"features.preset": "tfds", "vertex.project": "my-project", "run.root": "/r", "gate.skew.alpha": 0.01}
    # A section as a whole keeps the keys that are set themselves, before or after it, and the images.
    given |= {"trainer.epochs": 3, "trainer": "{epochs: 5, batch_size: 4000000}", "input": "{unlisted_images: reject}"}
    given |= {"split.method": "kfold", "split.num_folds": 5, "split.fold_index": 1}
    assert init("data", *(word for key, value in given.items() for word in ("--set", f"{key}={value}"))) == 0
    config = load_config("data.yaml")
    assert (config.features.preset, config.vertex.project, config.run.root) == ("tfds", "my-project", "/r")
    assert config.gate.skew.alpha == 0.01
    assert (config.split.fold_index, *config.split.ratios) == (1, "train", "eval", "test")
    assert (config.trainer.epochs, config.trainer.batch_size, config.input.unlisted_images) == (3, 4 * 10**6, "reject")


def test_square_images_need_the_order(here, capsys):
    for number in range(4):
        layouts.image(here / f"data/images/i{number}.jpg", number, (24, 24))
    layouts.lines(here / "data/m.csv", "picture,label,rle", *(f"i{n}.jpg,car,30 5 54 5 78 5" for n in range(4)))
    assert init("data") == 2
    assert "--set input.labels.rle.order=row" in capsys.readouterr().err
    assert init("data", "--set", "input.labels.rle.order=row") == 0
    assert load_config("data.yaml").input.labels.rle.order == "row"


def test_on_a_terminal_it_asks(here, monkeypatch, capsys):
    (here / "data").mkdir()
    layouts.mask_indices(here / "data")
    layouts.lines(here / "data/train.csv", "ImageId,ClassId,EncodedPixels", f"i0.jpg,1,{layouts.runs(0, 0)}")
    answers = iter(["", "7", "2", "1"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert init("data") == 0
    assert load_config("data.yaml").input.labels.path == "data/train.csv"
    assert "1. the annotations are data/masks" in capsys.readouterr().out


def test_json_has_what_was_detected(here, capsys):
    (here / "data").mkdir()
    layouts.severstal(here / "data")
    assert init("data", "--json", "--out", "c.yaml") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["file"] == "c.yaml"
    assert found["configuration"]["input"]["labels"]["format"] == "rle_csv"
    assert any("Severstal" in note for note in found["detected"])


def test_nothing_is_overwritten_and_a_dash_prints(here, capsys):
    (here / "data").mkdir()
    layouts.class_folders(here / "data")
    (here / "data.yaml").write_text("mine")
    assert init("data") == 2
    assert (here / "data.yaml").read_text() == "mine"
    capsys.readouterr()
    assert init("data", "--out", "-") == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    assert (printed["task"], printed["name"]) == ("classification", "data")


def test_the_run_has_the_name_of_the_file(here):
    (here / "data").mkdir()
    layouts.class_folders(here / "data")
    assert init("data", "--out", "my steel.yaml") == 0
    assert yaml.safe_load((here / "my steel.yaml").read_text())["name"] == "my-steel"
    assert init("data", "--out", "other.yml", "--set", "name=chosen") == 0
    assert yaml.safe_load(text := (here / "other.yml").read_text())["name"] == "chosen"
    assert "# Written by `shardwright init data --set=name=chosen`." in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing"], "missing"),
        (["data", "nowhere.csv"], "nowhere.csv"),
        (["data", ""], "LABELS: is empty"),
        (["data", "--out", ""], "--out: is empty"),
        (["data", "--set", "input.labels"], "is not KEY=VALUE"),
        (["data", "--set", "input.labels.oder=row"], "input.labels.oder"),
        (["data/car/0.jpg"], "is a file"),
    ],
)
def test_wrong_calls(here, capsys, arguments, message):
    (here / "data").mkdir()
    layouts.class_folders(here / "data")
    assert init(*arguments) == 2
    assert message in capsys.readouterr().err


def test_names_of_pipelines():
    assert pipeline_name("gs://bucket/2024 Photos/*.jpg") == "data-2024-photos"
    assert pipeline_name("a/Steel_Defects/") == "steel-defects"


def test_settings_are_yaml():
    assert settings_of(Namespace(set=["a.b=[1, 2]", "c=x=y"])) == {"a.b": [1, 2], "c": "x=y"}
    with pytest.raises(UsageError):
        settings_of(Namespace(set=["a=["]))


@pytest.mark.parametrize(
    ("keys", "labels", "found"),
    [
        (["a/1.jpg", "b/2.jpg"], None, [("", None)]),
        (["JPEGImages/1.jpg", "SegmentationClass/1.png"], None, [("JPEGImages", "")]),
        (["v/JPEGImages/1.jpg", "v/SegmentationClass/1.png"], None, [("v/JPEGImages", "v")]),
        (["img/1.jpg", "masks/1.png"], None, [("img", "masks"), ("", "masks")]),
        (["1.jpg", "1_mask.png"], None, [("", "")]),
        (["img/1.jpg", "t.csv"], None, [("img", "t.csv"), ("", "t.csv")]),
        (["img/1.jpg", "sample_submission.csv"], None, [("", None)]),
        (["img/1.jpg", "masks/1.png", "t.csv"], "masks", [("img", "masks"), ("", "masks")]),
        (["labels/1.png"], None, [("", None)]),
        (["export.json", "images/1.jpg"], None, [("images", None)]),
        (
            ["1.jpg", "build.json", "manifest.json", "t.csv"],
            None,
            [("", n) for n in ("build.json", "manifest.json", "t.csv")],
        ),
    ],
)
def test_candidates(keys, labels, found):
    assert list(dict.fromkeys(propose(keys, labels))) == [Hypothesis(*one) for one in found]


@pytest.mark.parametrize(
    "names",
    [
        ["ds/build.json", "ds/index/Split-train/0.jsonl", "ds/manifest.json"],
        ["runs/r/artifacts/Evaluator/1/figures.json", "runs/r/metadata.sqlite"],
        ["@eaDir/1.jpg/thumb.jpg", "__MACOSX/1.jpg", "Thumbs.db", ".thumbnails/1.jpg"],
    ],
)
def test_outputs_and_files_of_systems_are_not_looked_at(here, names):
    for name in ["1.jpg", *names]:
        (here / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (here / "data" / name).touch()
    assert Inventory.of("data").keys == ["1.jpg"]


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("folder", "labels", "given", "label_format", "written"),
    [
        ("flowers", None, [], "class_folders", 300),
        ("steel_defects", "image_class.csv", [], "rle_csv", 840),
        ("steel_defects", "image_label.csv", [], "rle_csv", 840),
        ("steel_defects", "masks", [], "mask_images", 840),
        ("golden", None, [], "tfrecord", 40),
        ("hostile", None, ["--set=input.labels.format=none", "--set=rejects.max_fraction=0.25"], "none", 80),
        ("hostile/renamed", None, ["--set=input.labels.format=none", "--set=rejects.max_fraction=0.1"], "none", 8),
    ],
)
def test_real_data(here, shared_data, folder, labels, given, label_format, written):
    paths = [shared_data / folder, *([shared_data / folder / labels] if labels else [])]
    assert init(*paths, *given, "--out", "c.yaml") == 0
    assert load_config("c.yaml").input.labels.format == label_format
    assert main(["ingest", "c.yaml", "--out", "out"]) == 0
    assert manifest_of(here).totals["written"] >= written


@pytest.mark.shared_data
def test_real_data_with_two_readings(here, shared_data, capsys):
    assert init(shared_data / "steel_defects") == 2
    error = capsys.readouterr().err
    assert all(f"steel_defects/{name}" in error for name in ("image_class.csv", "image_label.csv", "masks"))
    # Its table names the files by their path from the folder above.
    assert init(shared_data / "hostile", "--set", "split.method=hash", "--set", "rejects.max_fraction=0.22") == 0


def test_folders_of_files_of_one_kind_are_not_classes_where_annotations_cannot_be_read(here, capsys):
    for number in range(3):
        layouts.image(here / f"data/images/{number}.jpg", number)
    (here / "data/default.json").write_text('{"videoSettings": {}, "tags": [{"name": "a"}]}')
    assert main(["init", "data", "--out", "c.yaml"]) == 2
    error = capsys.readouterr().err
    assert "holds VoTT JSON" in error
    assert "input.labels.format=none" not in error
    assert not (here / "c.yaml").exists()


def test_files_that_a_downloader_wrote_next_to_images_are_named(here, capsys):
    from PIL import Image

    folder = here / "downloaded/00000"
    folder.mkdir(parents=True)
    for number in range(4):
        Image.new("RGB", (48, 32), (number * 9, 0, 99)).save(folder / f"{number}.jpg")
        (folder / f"{number}.txt").write_text("a cloud")
        (folder / f"{number}.json").write_text(json.dumps({"caption": "a cloud", "width": 48, "status": "success"}))
    assert init("downloaded", "--out", "c.yaml") == 2
    message = capsys.readouterr().err
    assert "0.json: is JSON, but has no list 'images' (it holds 'caption', 'width', 'status')" in message
    assert "input.labels.format=none" not in message
    assert "no images below" not in message


def test_names_are_read_back_and_cannot_end_comments(here, capsys):
    folder = here / "photo\ngra\x85p\u200dhs"
    folder.mkdir()
    Image.new("RGB", (8, 6)).save(folder / "sound.jpg")
    for number in range(12):
        (folder / f"\x1b[2J\u2028task: x\nname: {number}.jpg").write_bytes(b"neither JPEG nor PNG")
    none = ["--set", "input.labels.format=none", "--set", "rejects.max_fraction=1"]
    assert init(folder, *none, "--out", "made.yaml") == 0
    text = (here / "made.yaml").read_text(encoding="utf-8")
    assert r"photo\u000agra\u0085p\u200dhs" in text
    capsys.readouterr()
    assert init(folder, *none, "--set", "name=made", "--out", "-") == 0
    (here / "printed.yaml").write_text(capsys.readouterr().out, encoding="utf-8")
    assert load_config(here / "printed.yaml") == load_config(here / "made.yaml")
    assert load_config(here / "made.yaml").input.images == folder.name


def test_the_limit_of_rejects_is_never_raised_and_the_command_for_it_works(tmp_path, image_input, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    image_input(tmp_path / "in", layout="label_csv", images=12)
    for name in ("003.jpg", "005.jpg"):
        (tmp_path / "in/images" / name).write_bytes(b"<html>")
    assert main(["init", "in", "--out", "c.yaml"]) == 2
    error = capsys.readouterr().err
    assert "2 of 12 inputs would be rejected" in error
    assert "not_an_image 2. For example 003.jpg: " in error
    assert not (tmp_path / "c.yaml").exists()
    (call,) = (line for line in error.splitlines() if line.startswith("    shardwright init "))
    assert main(shlex.split(call)[1:]) == 0
    assert main(["ingest", "c.yaml", "--out", "ds", "-q"]) == 0
