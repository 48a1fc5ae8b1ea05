"""Checksums have the values that their specifications give, and no other module knows an algorithm."""

import re
from pathlib import Path

import pytest

from shardwright.storage.checksum import ALGORITHMS, SHA256, checksum_file, checksum_of, digest_of, md5_of, new_checksum

ROOT = Path(__file__).parents[2]
# Protocols that fix their algorithm: splits are those of SHA-256 in every version.
FIXED = {"shardwright/storage/checksum.py", "shardwright/splits/assignment.py"}


@pytest.mark.parametrize(
    ("length", "checksum"),
    # The official vectors of BLAKE3: bytes that count from 0 to 250.
    [
        (0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"),
        (1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"),
        (1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"),
        (1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"),
    ],
)
def test_blake3_is_that_of_the_specification(length, checksum, tmp_path):
    data = bytes(i % 251 for i in range(length))
    assert checksum_of(data) == checksum == digest_of(memoryview(data)).hex()
    (tmp_path / "f").write_bytes(data)
    assert checksum_file(tmp_path / "f") == checksum
    grown = new_checksum()
    for at in range(0, length, 100):
        grown.update(data[at : at + 100])
    assert (grown.hexdigest(), grown.digest().hex()) == (checksum, checksum)


def test_sha256_and_md5_are_those_of_the_specifications():
    assert checksum_of(b"abc", SHA256) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert new_checksum(SHA256).hexdigest() == checksum_of(b"", SHA256)
    assert md5_of(b"abc") == "900150983cd24fb0d6963f7d28e17f72"
    assert {len(digest_of(b"", algorithm)) for algorithm in ALGORITHMS} == {32}


def test_one_module_knows_algorithms():
    modules = [path for name in ("shardwright", "components", "pipelines") for path in (ROOT / name).rglob("*.py")]
    found = [
        path.relative_to(ROOT).as_posix()
        for path in modules
        if re.search(r"^\s*(import|from) (hashlib|blake3)\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert set(found) == FIXED
