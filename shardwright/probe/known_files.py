"""What is known of files: their content and what their pixels tell, by probing or from an earlier day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from shardwright.probe.hashes import ImageHashes
from shardwright.probe.quality import Quality
from shardwright.probe.row import ProbeRow
from shardwright.storage import FileHash, Refusal

_DIGEST_BYTES = 32


@dataclass
class KnownFiles:
    """What is known of each file of a listing, by position.

    Attributes:
        hashed: whether its content is known, bool (n,).
        sha256: of each whose is, uint8 (n, 32).
        crc32c: likewise, uint32 (n,).
        sound: whether its pixels could be decoded, and what they tell is known, bool (n,).
        hashes: the four hashes of sound images in the order of `ImageHashes`, uint64 (n, 4); (0, 4) where nobody asks
            what pixels tell.
        quality: the measures in the order of `Quality`, float64 (n, 7); likewise.
        pixels: SHA-256 of the displayed pixels, uint8 (n, 32); (0, 32) where not asked for.
        rejected: position -> why the file is no image that can be decoded.
        notes: for the user.
    """

    hashed: npt.NDArray[np.bool_]
    sha256: npt.NDArray[np.uint8]
    crc32c: npt.NDArray[np.uint32]
    sound: npt.NDArray[np.bool_]
    hashes: npt.NDArray[np.uint64]
    quality: npt.NDArray[np.float64]
    pixels: npt.NDArray[np.uint8]
    rejected: dict[int, Refusal] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @staticmethod
    def nothing(count: int, *, probed: bool, pixels: bool) -> KnownFiles:
        """Nothing is known yet of so many files.

        Args:
            count: how many.
            probed: whether it is asked what pixels tell.
            pixels: whether it is asked for hashes of all pixels.
        """
        rows = count if probed else 0
        return KnownFiles(
            np.zeros(count, np.bool_),
            np.zeros((count, _DIGEST_BYTES), np.uint8),
            np.zeros(count, np.uint32),
            np.zeros(count, np.bool_),
            np.zeros((rows, len(ImageHashes._fields)), np.uint64),
            np.zeros((rows, len(Quality._fields))),
            np.zeros((rows if pixels else 0, _DIGEST_BYTES), np.uint8),
        )

    def add_content(self, position: int, content: FileHash) -> None:
        """The file at a position has these hashes."""
        self.hashed[position] = True
        self.sha256[position] = np.frombuffer(content.sha256, np.uint8)
        self.crc32c[position] = content.crc32c

    def add_row(self, position: int, row: ProbeRow) -> None:
        """The pixels of the file at a position tell this; nothing where that is not all that is asked for."""
        if row.hashes is None or row.quality is None or not len(self.hashes):
            return
        if len(self.pixels):
            if row.pixels is None:
                return
            self.pixels[position] = np.frombuffer(row.pixels, np.uint8)
        self.sound[position] = True
        self.hashes[position] = row.hashes
        self.quality[position] = row.quality

    def file(self, position: int) -> FileHash | None:
        """Hashes of a file whose content is known, else `None`."""
        if not self.hashed[position]:
            return None
        return FileHash(self.sha256[position].tobytes(), int(self.crc32c[position]))

    def files(self) -> Iterator[FileHash | None]:
        """The same of each."""
        return map(self.file, range(len(self.hashed)))

    def joined(self, read: npt.NDArray[np.int64], probed: KnownFiles) -> KnownFiles:
        """All files as if all had been probed.

        Args:
            read: positions of those that were.
            probed: what they tell, in that order.
        """
        result = KnownFiles(
            self.hashed.copy(),
            self.sha256,
            self.crc32c,
            self.sound.copy(),
            self.hashes,
            self.quality,
            self.pixels,
            {int(read[i]): refusal for i, refusal in probed.rejected.items()},
            self.notes,
        )
        pixels = ["pixels"] if len(self.pixels) else []
        for name in ("hashed", "sha256", "crc32c", "sound", "hashes", "quality", *pixels):
            getattr(result, name)[read] = getattr(probed, name)
        return result
