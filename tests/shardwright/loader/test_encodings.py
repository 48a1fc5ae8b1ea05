"""The comparison of ways to store images: its arithmetic, and that every way is measured on the same pixels."""

import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from shardwright.errors import UsageError
from shardwright.images import tf_ops
from shardwright.loader.encodings import STORED, EncodingRow, choose_encoding, compare_encodings, pays
from shardwright.loader.profile import LoaderReport
from shardwright.pipelines.cli import main
from shardwright.pipelines.commands.bench import encoding_lines

positive = st.floats(1, 1e7, allow_nan=False)


@given(positive, positive, positive, positive, st.floats(1e3, 1e12))
def test_a_way_pays_exactly_where_it_gives_more_images(size, rate, stored_size, stored_rate, reading):
    first, last = pays((size, rate), (stored_size, stored_rate))
    more = min(rate, reading / size) > min(stored_rate, reading / stored_size) * (1 + 1e-9)
    if more:
        assert first <= reading * (1 + 1e-9)
        assert reading <= last * (1 + 1e-9)
    elif first < reading * (1 - 1e-9) and reading < last * (1 - 1e-9):
        # Within the range it is never worse.
        assert min(rate, reading / size) >= min(stored_rate, reading / stored_size) * (1 - 1e-9)


def row(name, size, rate, lossless=True):
    return EncodingRow(name, size, rate, lossless, 0.0)


def test_the_choice_depends_on_the_rate_of_reading_and_keeps_pixels():
    rows = [row(STORED, 50e3, 2000), row("raw", 500e3, 20_000), row("png", 300e3, 1000)]
    rows.append(row("jpeg, quality 60, chroma 420", 20e3, 90_000, lossless=False))
    assert choose_encoding(rows, 200e6)[0] == STORED
    chosen, reason = choose_encoding(rows, 5e9)
    assert chosen == "raw"
    assert (
        reason
        == "10,000 instead of 2,000 images/s at 5,000 MB/s of reading (--read-rate), for 10.0 x the bytes on the disk"
    )


def test_every_way_is_measured():
    random = np.random.default_rng(0)
    encoded = []
    for _ in range(5):
        file = io.BytesIO()
        cells = Image.fromarray(random.integers(0, 256, (6, 8, 3), np.uint8)).resize((64, 48))
        cells.save(file, "JPEG", quality=90)
        encoded.append(file.getvalue())
    rows = {one.name: one for one in compare_encodings(encoded, tf_ops.decode_jpeg, rounds=2)}
    assert next(iter(rows)) == STORED
    assert rows[STORED].bytes == sum(map(len, encoded)) / 5
    assert rows["raw"].bytes == 64 * 48 * 3
    assert rows["jpeg, quality 60, chroma 420"].bytes < rows["jpeg, quality 95, chroma 444"].bytes
    assert {name for name, one in rows.items() if one.images is None} == {"webp, lossless"}
    assert {name for name, one in rows.items() if one.lossless} == {
        *(STORED, "raw", "png", "png, optimize", "webp, lossless")
    }
    assert rows[STORED].pays == rows["webp, lossless"].pays == math.inf


@pytest.mark.parametrize("rate", ["0", "-1", "nan"])
def test_a_rate_of_reading_is_above_0(rate, capsys):
    assert main(["bench", "loader", "x", "--read-rate", rate]) == UsageError("").exit_code
    assert "--read-rate" in capsys.readouterr().err


def test_the_table_states_from_which_rate_each_way_pays():
    rows = (
        EncodingRow(STORED, 50e3, 2000, True, math.inf, math.inf),
        EncodingRow("raw", 500e3, 20_000, True, 1e9),
        EncodingRow("png", 300e3, 1000, True, math.inf, math.inf),
        EncodingRow("jpeg, quality 60, chroma 420", 20e3, 1500, False, 0.0, 75e6),
        EncodingRow("webp, lossless", 200e3, None, True, math.inf, math.inf),
    )
    lines = [line.split("  ")[-1].strip() for line in encoding_lines(LoaderReport((), (), (), rows))]
    assert lines[2:] == [
        *("from 1,000 MB/s", "never", "below 75 MB/s (changes pixels)"),
        "not measured: the loader has no decoder for it",
    ]
