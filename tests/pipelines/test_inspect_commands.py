"""`shardwright inspect` and `get`: exit codes, tables, JSON, files; without TensorFlow."""

import json
import subprocess
import sys

import pytest

from shardwright.dataset.reader import ImageDataset
from shardwright.pipelines import cli
from shardwright.tfrecords.encode import encode_example
from shardwright.tfrecords.records import find_feature, frame

SHARD = "Split-train/data-00000-of-00002.tfrecord"


def test_a_dataset(dataset, capsys):
    assert cli.main(["inspect", str(dataset)]) == 0
    output = capsys.readouterr().out
    assert f"{dataset} (ingest, segmentation)" in output
    assert "2: Fish, Sugar" in output
    assert next(line.split() for line in output.splitlines() if line.startswith("train"))[:3] == ["train", "5", "2"]
    assert cli.main(["inspect", str(dataset), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["splits"][1]["records"] == 5


def test_a_file_and_its_record(dataset, capsys):
    assert cli.main(["inspect", str(dataset / SHARD)]) == 0
    assert f"{dataset / SHARD}: 3 records, " in capsys.readouterr().out
    assert cli.main(["inspect", str(dataset / SHARD), "--record", "1"]) == 0
    output = capsys.readouterr().out
    assert "png 24 x 36, 3 channels" in output
    assert "\x1b" not in output
    assert cli.main(["inspect", str(dataset / SHARD), "--record", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["image"] == "image/encoded"


def test_a_terminal_shows_the_picture(dataset, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert cli.main(["inspect", str(dataset / SHARD), "--record", "1"]) == 0
    assert "\N{UPPER HALF BLOCK}" in capsys.readouterr().out


def test_damage_exits_1(dataset, capsys):
    data = bytearray((dataset / SHARD).read_bytes())
    data[30] ^= 4
    (dataset / SHARD).write_bytes(data)
    assert cli.main(["inspect", str(dataset / SHARD)]) == 1
    output = capsys.readouterr().out
    assert "! record 0 at offset 0: the checksum" in output
    assert "1 record cannot be read" in output


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        (["inspect", "DATASET", "--record", "1"], 2, "--record is for a file"),
        (["inspect", f"DATASET/{SHARD}", "--record", "-1"], 2, "--record: -1 is not a record number"),
        (["inspect", f"DATASET/{SHARD}", "--record", "3"], 2, "no record 3; 3 can be read"),
        (["inspect", "DATASET/manifest.json"], 2, "not a TFRecord file"),
        (["inspect", "DATASET/Split-train"], 1, "no manifest.json"),
        (["inspect", "/nowhere"], 2, "cannot be read"),
        (["get", "DATASET", "nothing of it"], 2, "no record has the key 'nothing of it'"),
        (["get", "DATASET/Split-train", "x"], 1, "no manifest.json"),
        (["get", "DATASET", "train/0003", "--out", "/nowhere/x.png"], 2, "--out: /nowhere/x.png cannot be written"),
    ],
)
def test_a_wrong_call_is_reported(dataset, capsys, call, code, message):
    assert cli.main([word.replace("DATASET", str(dataset)) for word in call]) == code
    assert message in capsys.readouterr().err


def test_the_image_of_a_key_is_written_once_byte_for_byte(dataset, tmp_path, capsys):
    out = tmp_path / "image.png"
    assert cli.main(["get", str(dataset), "train/0003", "--out", str(out), "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["key"], output["split"], output["image"]) == ("train/0003", "train", "image/encoded")
    payloads = dict(ImageDataset.open(dataset).records("train"))
    assert [out.read_bytes()] == find_feature(payloads["train/0003"], "image/encoded")
    assert cli.main(["get", str(dataset), "train/0003", "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_names_reach_no_terminal_as_commands(tmp_path, capsys):
    file = tmp_path / "a.tfrecord"
    file.write_bytes(frame(encode_example({"\x1b[2J": b"\x1b]0;title\x07"})))
    assert cli.main(["inspect", str(file)]) == 0
    assert cli.main(["inspect", str(file), "--record", "0"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_they_work_without_tensorflow(dataset):
    script = (
        "import sys\n"
        "sys.modules['tensorflow'] = None\n"
        "from shardwright.pipelines import cli\n"
        f"assert cli.main(['inspect', {str(dataset)!r}]) == 0\n"
        f"assert cli.main(['inspect', {str(dataset / SHARD)!r}, '--record', '0']) == 0\n"
        f"assert cli.main(['get', {str(dataset)!r}, 'train/0003']) == 0\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
