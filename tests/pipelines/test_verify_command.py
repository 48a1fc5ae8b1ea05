"""`shardwright verify`: exit codes, the table, JSON; without TensorFlow."""

import gzip
import json
import subprocess
import sys

from shardwright.pipelines import cli


def test_a_whole_dataset_exits_0(dataset, capsys):
    assert cli.main(["verify", str(dataset)]) == 0
    output = capsys.readouterr().out
    assert output.startswith(f"{dataset}: whole; 3 shards, 7 records, ")


def test_damage_exits_1_and_names_file_record_and_key(dataset, capsys):
    path = "Split-train/data-00000-of-00002.tfrecord"
    data = bytearray((dataset / path).read_bytes())
    data[30] ^= 4
    (dataset / path).write_bytes(data)
    assert cli.main(["verify", str(dataset)]) == 1
    row = capsys.readouterr().out.split("\n")[1]
    assert row.startswith(f"{path}  record 0, key train/0002  its payload of ")
    assert cli.main(["verify", str(dataset), "--json", "--deep", "--workers", "1"]) == 1
    output = json.loads(capsys.readouterr().out)
    assert (output["whole"], output["records"]) == (False, 7)
    (found,) = output["findings"]
    assert (found["file"], found["code"], found["record"], found["key"]) == (path, "payload", 0, "train/0002")


def test_no_dataset_exits_2(tmp_path, capsys):
    assert cli.main(["verify", str(tmp_path)]) == 2
    assert "has no manifest.json, so it is not a dataset" in capsys.readouterr().err


def test_any_file_of_records_is_read_to_its_end(dataset, tmp_path, capsys):
    shard = dataset / "Split-train/data-00000-of-00002.tfrecord"
    data = shard.read_bytes()
    (tmp_path / "packed.gz").write_bytes(gzip.compress(data))
    for file in (shard, tmp_path / "packed.gz"):
        assert cli.main(["verify", str(file), "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert (result["whole"], result["records"], result["shards"]) == (True, 3, 1)
    offsets = [
        json.loads(line)["offset"]
        for line in (dataset / "index" / shard.relative_to(dataset)).with_suffix(".jsonl").open()
    ]
    flipped = bytearray(data)
    flipped[offsets[1] + 30] ^= 1
    for wrong, code, number in ((bytes(flipped), "payload_checksum", 1), (data[:-5], "truncated", 2)):
        (tmp_path / "wrong").write_bytes(wrong)
        assert cli.main(["verify", str(tmp_path / "wrong"), "--json"]) == 1
        (found,) = json.loads(capsys.readouterr().out)["findings"]
        assert (found["code"], found["record"], found["offset"]) == (code, number, offsets[number])
    assert cli.main(["verify", str(tmp_path / "wrong")]) == 1
    assert "1 shard, 2 records" in capsys.readouterr().out
    for call, output in (
        ([str(dataset / "manifest.json")], "not a TFRecord file"),
        ([str(shard), "--deep"], "only a dataset contains hashes"),
        ([str(tmp_path / "nowhere")], "there is no such folder. Check the path."),
    ):
        assert cli.main(["verify", *call]) == 2
        assert output in capsys.readouterr().err


def test_it_works_without_tensorflow(dataset):
    script = (
        "import sys\n"
        "sys.modules['tensorflow'] = None\n"
        "from shardwright.pipelines import cli\n"
        f"assert cli.main(['verify', {str(dataset)!r}, '--deep']) == 0\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_name_with_a_line_end_stays_in_its_line(dataset, capsys):
    (dataset / "Split-train" / "a\nb").write_bytes(b"")
    assert cli.main(["verify", str(dataset)]) == 1
    assert "Split-train/a\\u000ab" in capsys.readouterr().out
