"""`estimate`: the cost of a run is its work divided by the rates, times the prices; the page shows the output."""

import json
import os
import re
from pathlib import Path

import pytest
import yaml

from shardwright.config import parse_config
from shardwright.errors import ConfigError
from shardwright.pipelines.cli import main
from shardwright.pipelines.cloud.costs import INGEST_MASKS, TRANSFORM, PriceTable, Rates, estimate, read_prices

PAGE = Path(__file__).parents[2] / "docs" / "deploy" / "costs.md"
CONFIG = {
    "name": "clouds",
    "input": {"images": "gs://bucket/x", "labels": {"path": "gs://bucket/x.csv"}},
    "vertex": {"trainer": {"machine": "ct5lp-hightpu-4t", "topology": "2x2"}},
}
PRICES = PriceTable(core_hour=2.0, reads_1000=1.0, writes_1000=10.0, storage_gb_month=3.0)


def made(prices=PRICES, images=1000, size=673_000_000, target="vertex", **sections):
    found = estimate(parse_config({**CONFIG, **sections}, base="/"), target, prices, images, size)
    return found, {row.step: row for row in found.rows}


def test_the_arithmetic():
    found, rows = made()
    assert rows["ingest"].price == pytest.approx(2 * INGEST_MASKS.core_hours(1000))
    assert rows["transform"].price == pytest.approx(2 * TRANSFORM.core_hours(1000))
    # 5 shards of 150 MB, each written twice.
    assert rows["requests"].price == pytest.approx(1.0 + 10 * 10 / 1000)
    # 2 kB of each record are not the image.
    assert rows["storage"].amount == pytest.approx(0.677 + 1000 * 352 * 544 * 40e3 / (350 * 525) / 1e9)
    assert (rows["train"].price, found.unknown) == (None, ("train",))
    assert found.total == pytest.approx(sum(rows[step].price for step in ("ingest", "transform", "requests")))


@pytest.mark.parametrize(
    ("sections", "shards", "transformed", "writes"),
    [
        ({"transform": {"size": [100, 200], "encoding": "raw"}}, 0.673, 0.06, 10),
        ({"transform": {"size": [100, 200], "encoding": "png"}}, 0.673, 0.04, 10),
        # 1,000 images take less than 4 GB as pixel values.
        ({"transform": {"size": [100, 200], "encoding": "auto"}}, 0.673, 0.06, 10),
        ({"images": {"encoding": "raw", "resize": "stretch", "size": [1000, 2000]}}, 6.0, 0.0417, 80),
    ],
)
def test_storage_is_that_of_the_encodings(sections, shards, transformed, writes):
    found = estimate(parse_config({**CONFIG, **sections}, base="/"), "vertex", PRICES, 1000, 673_000_000)
    rows = {row.step: row for row in found.rows}
    assert rows["storage"].amount == pytest.approx(shards + transformed + 0.004, rel=1e-3)
    assert rows["requests"].amount == 1000 + writes


def test_twice_the_bytes_take_twice_the_time():
    once, twice = made()[1], made(size=2 * 673_000_000)[1]
    assert twice["ingest"].price == pytest.approx(2 * once["ingest"].price)
    own = PriceTable(core_hour=1.0, rates=Rates(ingest=10.0))
    assert made(own)[1]["ingest"].amount == pytest.approx(1000 / 10 / 3600)


@pytest.mark.parametrize(
    ("target", "section", "hosts", "price"),
    [
        ("vertex", {"trainer": {"machine": "ct5lp-hightpu-4t", "topology": "2x2"}}, 1, 5.0),
        ("vertex", {"trainer": {"machine": "ct5lp-hightpu-4t", "topology": "4x4"}}, 4, 20.0),
        ("vertex", {"trainer": {"machine": "n1-standard-8", "gpu": "NVIDIA_TESLA_T4", "gpus": 2}}, 1, 3.0 + 2 * 0.5),
        # The price of this machine contains that of its GPU.
        ("vertex", {"trainer": {"machine": "g2-standard-8", "gpu": "NVIDIA_L4", "gpus": 1}}, 1, 0.75),
        ("vertex", {"resources": {"Trainer": {"cpu": 8}}}, 1, 8 * 2.0),
        ("kubeflow", {"trainer": {"gpu": "nvidia.com/gpu", "gpus": 4}}, 1, 4 * 1.5),
    ],
)
def test_the_training(target, section, hosts, price):
    table = PriceTable(
        core_hour=2.0,
        rates=Rates(train=8.0),
        machine_hours={
            "ct5lp-hightpu-4t": 5.0, "n1-standard-8": 3.0, "NVIDIA_TESLA_T4": 0.5, "g2-standard-8": 0.75,
            "nvidia.com/gpu": 1.5,
        },
    )  # fmt: skip
    _, rows = made(table, **{"trainer": {"epochs": 36, "hosts": hosts}, target: section}, target=target)
    # 800 images of the split, 36 times, at 8 a second: an hour.
    assert rows["train"].price == pytest.approx(price)
    unpriced = PriceTable(core_hour=2.0, rates=Rates(train=8.0))
    if "trainer" in section:
        _, rows = made(unpriced, **{"trainer": {"epochs": 36, "hosts": hosts}, target: section}, target=target)
        assert rows["train"].price is None
        assert "add machine_hours." in rows["train"].basis


def test_the_page_shows_what_is_printed(tmp_path, monkeypatch, capsys):
    text = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    Path("clouds.yaml").write_text(yaml.safe_dump(CONFIG))
    Path("prices.yaml").write_text(re.search(r"```yml\n(# prices\.yaml.*?)```", text, re.DOTALL)[1])
    command, shown = re.search(r"```text\n\$ shardwright (estimate [^\n]*)\n(.*?)```", text, re.DOTALL).groups()
    assert main(command.split()) == 0
    printed = capsys.readouterr().out
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        PAGE.write_text(text.replace(shown, printed), encoding="utf-8")
        shown = printed
    assert printed == shown
    assert main([*command.split(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["currency"] == "EUR"


def test_images_of_the_configuration_are_listed(tmp_path, capsys):
    (tmp_path / "images").mkdir()
    for name in "abc":
        (tmp_path / "images" / f"{name}.jpg").write_bytes(b"12345")
    (tmp_path / "images" / "labels.csv").write_bytes(b"not an image")
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({"input": {"images": str(tmp_path / "images")}}))
    (tmp_path / "p.yaml").write_text("core_hour: 1\n")
    call = ["estimate", str(tmp_path / "c.yaml"), "--target", "vertex", "--prices", str(tmp_path / "p.yaml"), "--json"]
    assert main(call) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["images"], found["bytes"]) == (3, 15)
    assert main([*call, "--images", "3"]) == 2


def test_spans_are_read_as_an_ingest_reads_them(tmp_path, capsys):
    for span, count in ((6, 1), (7, 2)):
        folder = tmp_path / str(span) / "images"
        folder.mkdir(parents=True)
        for number in range(count):
            (folder / f"{number}.jpg").write_bytes(b"12345")
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({"input": {"images": str(tmp_path / "{SPAN}" / "images")}}))
    (tmp_path / "p.yaml").write_text("core_hour: 1\nreads_1000: 1\n")
    call = ["estimate", str(tmp_path / "c.yaml"), "--target", "vertex", "--prices", str(tmp_path / "p.yaml")]
    assert main([*call, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["images"], found["bytes"], found["unknown"]) == (2, 10, ["train", "requests", "storage"])
    assert main(call) == 0
    printed = capsys.readouterr().out
    assert re.search(r"requests +\d+ requests +\? USD  unknown: add writes_1000\n", printed)
    assert re.search(r"storage .* \? USD  unknown: add storage_gb_month\n", printed)
    assert "(incomplete, without train, requests, storage)\n" in printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("currency: EUR\n", r"prices\.core_hour: missing"),
        ("core_hour: -1\n", r"core_hour: -1"),
        ("core_hour: 1\nmachine_hour: {a: 1}\n", r"Did you mean"),
        ("core_hour: 1\nmachine_hours: {a: x}\n", r"machine_hours"),
        ("core_hour: 1\nrates: {train: 0}\n", r"rates\.train"),
        ("core_hour: [\n", r"cannot be read"),
    ],
)
def test_wrong_prices_are_refused(tmp_path, text, message):
    (tmp_path / "p.yaml").write_text(text)
    from shardwright.errors import ShardwrightError

    with pytest.raises(ShardwrightError, match=message):
        read_prices(str(tmp_path / "p.yaml"))
    with pytest.raises(ConfigError):
        made(images=0)
