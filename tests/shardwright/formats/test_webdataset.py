"""Reading WebDataset's tar files: samples of other programs, and files that are damaged or made to do harm."""

import gc
import gzip
import io
import json
import tarfile

import pytest
from ingesting import examples, run
from PIL import Image
from recording import picture

from shardwright.errors import UsageError
from shardwright.formats.record_listing import holds_records
from shardwright.formats.webdataset import write_records as write_samples
from shardwright.pipelines.cli import main
from shardwright.storage import list_inputs

# Where so few images leave a class out of a split, which is a question of its own.
HASHED = ("--set", "split.method=hash")


def tar(members, **fields):
    """A tar file of names and bytes, or of `TarInfo`s."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", **fields) as archive:
        for name, data in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def special(name, kind):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


def samples(count=3):
    """As img2dataset and WebDataset's own examples write them: file, class, text, JSON."""
    for i in range(count):
        yield f"part/{i:04d}.JPG", picture(i, "jpeg")
        yield f"part/{i:04d}.cls", f"{'cat dog'.split()[i % 2]}\n".encode()
        yield f"part/{i:04d}.json", json.dumps({"depth": i, "note": "a.b", "none": None, "nested": {}}).encode()
        yield f"part/{i:04d}.mp4", b"not read"


def ingested(folder, out, **given):
    run({"task": "classification", "input": {"images": str(folder), **given}}, out, workers=1)
    return examples(out)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_samples_of_other_programs(tmp_path, pack):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.tar").write_bytes(pack(tar(samples())))
    assert "a.tar is a tar file of samples (WebDataset)" in holds_records(list_inputs(str(tmp_path / "in")))
    found = ingested(tmp_path / "in", tmp_path / "out")
    assert [found[key]["image/class/text"] for key in sorted(found)] == [[b"cat"], [b"dog"], [b"cat"]]
    assert [list(found[f"part/000{i}"]["depth"]) for i in range(3)] == [[0], [1], [2]]
    assert [found[f"part/000{i}"]["image/encoded"] for i in range(3)] == [[picture(i, "jpeg")] for i in range(3)]


def test_one_file_is_an_input(tmp_path, capsys):
    (tmp_path / "a.tar").write_bytes(tar(samples()))
    (tmp_path / "b.tar").write_bytes(b"not looked at")
    assert len(ingested(tmp_path / "a.tar", tmp_path / "out")) == 3
    assert main(["init", str(tmp_path / "a.tar"), "--out", str(tmp_path / "c.yaml"), *HASHED]) == 0
    assert f"images: {tmp_path / 'a.tar'}" in (tmp_path / "c.yaml").read_text()
    (tmp_path / "c.png").write_bytes(picture(0))
    with pytest.raises(UsageError, match=r"c\.png is a file, and not one of records\. Give the folder"):
        ingested(tmp_path / "c.png", tmp_path / "other")
    assert main(["init", str(tmp_path / "c.png"), "--out", str(tmp_path / "d.yaml")]) == 2
    assert "is a file" in capsys.readouterr().err


def test_init_names_the_archive(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.tar").write_bytes(tar(samples()))
    (tmp_path / "in/classes.json").write_text('["cat", "dog"]')
    assert main(["init", str(tmp_path / "in"), "--out", str(tmp_path / "c.yaml"), *HASHED]) == 0
    shown = "".join(capsys.readouterr()) + (tmp_path / "c.yaml").read_text()
    assert "is a tar file of samples (WebDataset)" in shown
    assert "not read as annotations" not in shown


def test_a_long_archive_is_not_kept_in_memory():
    """`tarfile` keeps the header of every member, unless its list is emptied, which it does not document."""
    before = {id(info) for info in gc.get_objects() if isinstance(info, tarfile.TarInfo)}
    known = []

    class Copy(io.BytesIO):
        def write(self, data):
            infos = [info for info in gc.get_objects() if isinstance(info, tarfile.TarInfo)]
            known.append(sum(id(info) not in before for info in infos))
            return len(data)

    write_samples(io.BytesIO(tar(samples(8))), Copy(), "a.tar", ())
    assert len(known) == 8
    assert max(known) < 4


GOOD = tar(samples())
FLIPPED = bytearray(GOOD)
# In the name of a later header.
FLIPPED[GOOD.index(b"part/0001.JPG")] ^= 1
IMAGE = picture(0)


def header(info, size):
    """A header that states a size which is not that of the data."""
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT) + IMAGE + b"\0" * (-len(IMAGE) % 512 + 1024)


BAD = {
    "cut off": (GOOD[: len(GOOD) // 2 + 100], "damaged"),
    "no end": (GOOD[: GOOD.rindex(b"part/0002.mp4") + 1024], "its end is missing"),
    "a flipped bit": (bytes(FLIPPED), "no header of a file is at byte"),
    "a size beyond the file": (header(tarfile.TarInfo("a.jpg"), 1 << 20), "damaged"),
    "a huge size": (header(tarfile.TarInfo("a.jpg"), 1 << 40), "at most 268435456 are read"),
    "a negative size": (header(tarfile.TarInfo("a.jpg"), -1024), "a.tar: "),
    "a symbolic link": (tar([(special("a.jpg", tarfile.SYMTYPE), b"")]), "'a.jpg' is a link"),
    "a hard link": (tar([(special("a.jpg", tarfile.LNKTYPE), b"")]), "'a.jpg' is a link"),
    "a device": (tar([(special("a.jpg", tarfile.CHRTYPE), b"")]), "'a.jpg' is not a plain file"),
    "two images": (tar([("a.jpg", IMAGE), ("a.png", IMAGE)]), "several images: jpg, png"),
    "one name twice": (tar([("a.jpg", IMAGE), ("a.jpg", IMAGE)]), "'a.jpg' is there twice"),
    "no JSON": (tar([("a.jpg", IMAGE), ("a.json", b"[" * 100_000)]), "json is not a JSON object"),
    "a text that is none": (tar([("a.jpg", IMAGE), ("a.cls", b"\xff")]), "cls is not UTF-8"),
    "an export's JSON with other values": (
        tar([("a.jpg", IMAGE), ("a.json", b'{"key":1,"labels":[],"classes":[],"boxes":[],"box_classes":[]}')]),
        "another kind than the export writes",
    ),
    "no samples": (tar([("README", b"hello")]), "no records"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_error(tmp_path, name):
    data, message = BAD[name]
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.tar").write_bytes(data)
    with pytest.raises(UsageError, match=message):
        ingested(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_names_that_escape_are_names_of_records_only(tmp_path):
    (tmp_path / "in").mkdir()
    names = ["../../x", "/x", "a/../../y", "ok", "ok2", "ok3"]
    members = [(f"{name}{end}", data) for name in names for end, data in ((".jpg", IMAGE), (".cls", b"cat"))]
    pictures = iter(picture(i) for i in range(9))
    (tmp_path / "in/a.tar").write_bytes(
        tar([(name, next(pictures) if name.endswith("jpg") else data) for name, data in members])
    )
    assert sorted(ingested(tmp_path / "in", tmp_path / "out")) == ["a.tar/0", "a.tar/1", "a.tar/2", "ok", "ok2", "ok3"]
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}


def test_classes_are_checked(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.tar").write_bytes(tar([("a.jpg", IMAGE), ("a.mask1.png", IMAGE)]))
    for text, message in (('["a", "a"]', "not a JSON list of different names"), ('["a"]', "mask1.png: .* 1 classes")):
        (tmp_path / "in/classes.json").write_text(text)
        with pytest.raises(UsageError, match=message):
            ingested(tmp_path / "in", tmp_path / "out")


def test_other_names_of_classes_are_another_dataset(tmp_path):
    (tmp_path / "in").mkdir()
    # The masks are of class 1 only, so the records of both builds differ in the name of a class alone.
    file = io.BytesIO()
    Image.new("L", Image.open(io.BytesIO(IMAGE)).size, 255).save(file, "png")
    (tmp_path / "in/a.tar").write_bytes(tar([("a.jpg", IMAGE), ("a.mask1.png", file.getvalue())]))
    raw = {"task": "segmentation", "input": {"images": str(tmp_path / "in")}}
    found = []
    for names in (["cat", "dog"], ["dog", "cat"], ["cat", "dog"]):
        (tmp_path / "in/classes.json").write_text(json.dumps(names))
        found.append(run(raw, tmp_path / f"out{len(found)}", workers=1))
    assert found[0].digest == found[2].digest
    assert found[0].fingerprint != found[1].fingerprint
    (tmp_path / "in/classes.json").write_text('["dog", "cat"]')
    with pytest.raises(UsageError):
        run(raw, tmp_path / "out0", workers=1)
