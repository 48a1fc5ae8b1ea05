"""What reading input from outside may cost, in terms of its own size.

Limits of a file's bytes do not limit what a reader makes of them: a header of three megabytes can unpack to gigabytes,
and two bytes can become an object of two hundred. Each format states its `Budget` as a constant beside the code that
reads it; the table in `docs/how-to/ingest.md` is made of these.
"""

from __future__ import annotations

from dataclasses import dataclass


class OverBudget(ValueError):
    """A file costs more than its format allows: a sentence about it, without its name and end."""


@dataclass(frozen=True)
class Budget:
    """The limits of a format. 0 where a limit does not apply.

    Attributes:
        what: what the objects are, for messages.
        objects: how many of them any file may have.
        bytes_each: bytes of the file for each object of a file that has more.
        unpacked: bytes that any compressed file may unpack to.
        ratio: unpacked bytes for each byte of a compressed file that unpacks to more.
        header: bytes of a header, or of another part that is read before anything in it can be checked.
        depth: levels of values within values.
    """

    what: str = "values"
    objects: int = 0
    bytes_each: int = 0
    unpacked: int = 0
    ratio: int = 0
    header: int = 0
    depth: int = 0

    def most_objects(self, size: int) -> int:
        """Returns how many objects a file of `size` bytes may have."""
        return max(self.objects, size // self.bytes_each if self.bytes_each else 0)

    def most_unpacked(self, size: int) -> int:
        """Returns how many bytes a file of `size` bytes may unpack to."""
        return max(self.unpacked, size * self.ratio)

    def check_objects(self, count: int, size: int) -> None:
        """Raises `OverBudget` where a file of `size` bytes has more objects than it may."""
        if count > (most := self.most_objects(size)):
            raise OverBudget(f"it has more than {most:,} {self.what} in {size:,} bytes, more than any real file")

    def check_unpacked(self, count: int, size: int) -> None:
        """Raises `OverBudget` where a file of `size` bytes unpacks to more bytes than it may."""
        if count > (most := self.most_unpacked(size)):
            raise OverBudget(f"its {size:,} bytes unpack to more than {most:,}, which no real file does")

    def check_header(self, size: int, name: str) -> None:
        """Raises `OverBudget` where a header is longer than it may be."""
        if size > self.header:
            raise OverBudget(f"the {name} has {size:,} bytes; at most {self.header:,} are read")
