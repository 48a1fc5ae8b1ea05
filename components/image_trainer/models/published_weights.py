"""The weights of the encoders that Keras publishes: where they are, and their checksums.

`shardwright weights fetch` is the only thing in the project that downloads weights. Trainings read files.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from shardwright.errors import CheckFailed, StorageError, UsageError
from shardwright.storage.checksum import md5_of
from shardwright.storage.whole_files import write_bytes

_ADDRESS = "https://storage.googleapis.com/tensorflow/keras-applications/efficientnet_v2"
_SECONDS = 60
# Many times the size of the largest file. A proxy may send an endless answer.
_MOST_BYTES = 500_000_000


@dataclass(frozen=True)
class PublishedWeights:
    """A file of weights.

    Attributes:
        file: its name.
        md5: its MD5, the checksum that Keras publishes.
    """

    file: str
    md5: str


# Encoder -> its weights without a classifier, from ImageNet; the checksums are those in the source of Keras.
WEIGHTS: dict[str, PublishedWeights] = {
    "efficientnetv2-b0": PublishedWeights("efficientnetv2-b0_notop.h5", "893217f2bb855e2983157299931e43ff"),
    "efficientnetv2-b1": PublishedWeights("efficientnetv2-b1_notop.h5", "0e80663031ca32d657f9caa404b6ec37"),
    "efficientnetv2-b2": PublishedWeights("efficientnetv2-b2_notop.h5", "1dfe2e7a5d45b6632553a8961ea609eb"),
    "efficientnetv2-b3": PublishedWeights("efficientnetv2-b3_notop.h5", "f6abf7b5849ac99a89b50dd3fd532856"),
}


def fetch_weights(name: str, folder: str, *, mirror: str = "", force: bool = False) -> tuple[Path, bool]:
    """Downloads the weights of an encoder, and compares their checksum.

    Args:
        name: the encoder, of `WEIGHTS`.
        folder: where the file is written; it is made.
        mirror: address of a folder with the same files; by default that of Keras.
        force: replace a file with another checksum.

    Returns:
        The file, and true if it was there already.

    Raises:
        UsageError: another file of the name exists, or the address is not one of HTTP.
        StorageError: the download fails.
        CheckFailed: what was downloaded has another checksum; nothing is written.
    """
    published, target = WEIGHTS[name], Path(folder, WEIGHTS[name].file)
    address = f"{(mirror or _ADDRESS).rstrip('/')}/{published.file}"
    if not address.startswith(("https://", "http://")):
        raise UsageError(f"--mirror: {mirror!r} is not an address. Write https://host/folder.")
    try:
        found = md5_of(target.read_bytes())
    except FileNotFoundError:
        found = ""
    if found == published.md5:
        return target, True
    if found and not force:
        raise UsageError(
            f"{target}: exists already with the MD5 {found}, and the published file has {published.md5}. "
            "Replace it with --force, or name another folder."
        )
    data = _download(address, published, folder)
    if md5_of(data) != published.md5:
        raise CheckFailed(
            f"{address}: the answer has the MD5 {md5_of(data)} ({len(data)} bytes), and the published file has "
            f"{published.md5}. Nothing was written. Perhaps a proxy answered with an error page: fetch it from "
            "another network."
        )
    write_bytes(target, data)
    return target, False


def _download(address: str, published: PublishedWeights, folder: str) -> bytes:
    try:
        # The variables https_proxy and no_proxy apply.
        with urllib.request.urlopen(address, timeout=_SECONDS) as answer:  # noqa: S310 (checked above)
            data: bytes = answer.read(_MOST_BYTES)
            return data
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            problem = f"the server answers {error.code} {error.reason}"
        else:
            problem = str(getattr(error, "reason", error)) or type(error).__name__
        raise StorageError(
            f"{address}: cannot be downloaded ({problem}). If this network does not allow it, download the file "
            f"elsewhere, check that its MD5 is {published.md5}, and copy it to {Path(folder, published.file)}; "
            "or give --mirror."
        ) from None
