"""What is known of an input's files before any is read, because an earlier dataset was made of the same ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from shardwright.ingest.origins import InputOrigin
from shardwright.probe.hashes import ImageHashes
from shardwright.probe.quality import Quality
from shardwright.probe.run import ProbedInput
from shardwright.storage import FileHash, Listing

_DIGEST_BYTES = 32


@dataclass
class Known:
    """What is known of each file of a listing, by position.

    Attributes:
        proven: whether its content is known: the store lists the size and the checksum that it had, bool (n,).
        sha256: of each that is, uint8 (n, 32).
        crc32c: likewise, uint32 (n,).
        sound: whether what its pixels tell is known too, bool (n,).
        hashes: of each whose is, as `ProbedInput` has them.
        quality: likewise.
        pixels: likewise; (0, 32) where they are of no use.
    """

    proven: npt.NDArray[np.bool_]
    sha256: npt.NDArray[np.uint8]
    crc32c: npt.NDArray[np.uint32]
    sound: npt.NDArray[np.bool_]
    hashes: npt.NDArray[np.uint64]
    quality: npt.NDArray[np.float64]
    pixels: npt.NDArray[np.uint8]
    notes: list[str] = field(default_factory=list)

    @staticmethod
    def nothing(count: int, *, probed: bool, pixels: bool) -> Known:
        """Nothing is known of so many files.

        Args:
            count: how many.
            probed: whether what pixels tell is of use.
            pixels: whether hashes of all pixels are.
        """
        rows = count if probed else 0
        return Known(
            np.zeros(count, np.bool_),
            np.zeros((count, _DIGEST_BYTES), np.uint8),
            np.zeros(count, np.uint32),
            np.zeros(count, np.bool_),
            np.zeros((rows, len(ImageHashes._fields)), np.uint64),
            np.zeros((rows, len(Quality._fields))),
            np.zeros((rows if pixels else 0, _DIGEST_BYTES), np.uint8),
        )

    def add(self, position: int, origin: InputOrigin) -> None:
        """The file at a position is what another dataset was made of."""
        self.add_content(position, FileHash(origin.sha256, origin.crc32c))
        row = origin.row
        if not len(self.hashes) or row is None or row.hashes is None or row.quality is None:
            return
        if len(self.pixels):
            if row.pixels is None:
                return
            self.pixels[position] = np.frombuffer(row.pixels, np.uint8)
        self.sound[position] = True
        self.hashes[position] = row.hashes
        self.quality[position] = row.quality

    def add_content(self, position: int, content: FileHash) -> None:
        """The file at a position has these hashes."""
        self.proven[position] = True
        self.sha256[position] = np.frombuffer(content.sha256, np.uint8)
        self.crc32c[position] = content.crc32c

    def file(self, position: int) -> FileHash | None:
        """Hashes of a file whose content is known, else `None`."""
        if not self.proven[position]:
            return None
        return FileHash(self.sha256[position].tobytes(), int(self.crc32c[position]))

    def joined(self, read: npt.NDArray[np.int64], probed: ProbedInput) -> ProbedInput:
        """All files as if all had been probed.

        Args:
            read: positions of those that were.
            probed: what they tell, in that order.
        """
        result = ProbedInput(
            self.proven.copy(),
            self.sha256,
            self.crc32c,
            self.sound.copy(),
            self.hashes,
            self.quality,
            self.pixels,
            {int(read[i]): refusal for i, refusal in probed.rejected.items()},
        )
        for name in (
            "readable",
            "sha256",
            "crc32c",
            "sound",
            "hashes",
            "quality",
            *(["pixels"] if len(self.pixels) else []),
        ):
            getattr(result, name)[read] = getattr(probed, name)
        return result


def part_of(listing: Listing, positions: npt.NDArray[np.int64]) -> Listing:
    """A listing of some of the files of another."""
    chosen = positions.tolist()
    return Listing(
        listing.root,
        [listing.keys[i] for i in chosen],
        [listing.names[i] for i in chosen],
        [listing.sizes[i] for i in chosen],
        [],
        tuple(listing.pins[i] for i in chosen) if listing.pins else (),
    )
