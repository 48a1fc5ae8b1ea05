"""Bombs: images of every format, and folders of them."""

from __future__ import annotations

import functools
import io
import struct
import zlib
from pathlib import Path

from bombing import SEGMENTATION, Input, bomb, images, picture
from PIL import Image


def one_image(folder: Path, name: str, data: bytes) -> Input:
    (folder / "a").mkdir()
    images(folder / "a")
    (folder / "a" / name).write_bytes(data)
    return {"images": "set", "labels": {"format": "class_folders"}}


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_with(*chunks: bytes) -> bytes:
    data = picture()
    return data[:33] + b"".join(chunks) + data[33:]


@functools.cache
def packed_zeros(size: int) -> bytes:
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()


@bomb("PNG", 32 << 20, 2 << 30)
def png_profile(folder: Path, size: int) -> Input:
    return one_image(folder, "x.png", png_with(chunk(b"iCCP", b"p\0\0" + packed_zeros(size))))


@bomb("PNG", 32 << 20, 2 << 30)
def png_texts(folder: Path, size: int) -> Input:
    packed = packed_zeros(size)
    texts = chunk(b"zTXt", b"p\0\0" + packed) * 50 + chunk(b"iTXt", b"p\0\1\0\0\0" + packed) * 50
    return one_image(folder, "x.png", png_with(texts))


@bomb("PNG", 100_000, 4_000_000)
def png_chunks(folder: Path, size: int) -> Input:
    """Empty chunks."""
    return one_image(folder, "x.png", png_with(chunk(b"teXt", b"") * size))


@bomb("PNG", 100_000, 2_000_000)
def png_exif(folder: Path, size: int) -> Input:
    """Blocks of Exif with a full directory each."""
    entry = struct.pack(">HHII", 0x9000, 4, 1, 0)
    exif = b"MM\0*\0\0\0\x08" + struct.pack(">H", 5000) + entry * 5000
    return one_image(folder, "x.png", png_with(chunk(b"eXIf", exif) * (size // 5000)))


@bomb("PNG", 1000, 14_000)
def png_pixels(folder: Path, size: int) -> Input:
    out = io.BytesIO()
    Image.new("1", (size, size)).save(out, "PNG", optimize=True)
    return one_image(folder, "x.png", out.getvalue())


@bomb("JPEG", 100, 10_000)
def jpeg_segments(folder: Path, size: int) -> Input:
    data = picture(form="JPEG")
    profile = b"\xff\xe2" + struct.pack(">H", 65535) + b"ICC_PROFILE\0\1\1".ljust(65533, b"x")
    segments = profile * 8
    return one_image(folder, "x.jpg", data[:2] + segments + b"\xff\xfe\0\2" * (size * 100) + data[2:])


@bomb("JPEG", 100, 490)
def jpeg_scans(folder: Path, size: int) -> Input:
    """Scans of a progressive picture, each decoded at full size."""
    out = io.BytesIO()
    Image.new("L", (14_000, 14_000)).save(out, "JPEG", progressive=True)
    data = out.getvalue()
    start = data.rindex(b"\xff\xda")
    return one_image(folder, "x.jpg", data[:start] + data[start:-2] * size + b"\xff\xd9")


@bomb("GIF", 100, 200_000)
def gif_frames(folder: Path, size: int) -> Input:
    data = picture(form="GIF")
    frame_ = data[data.index(b"\x2c") : -1]
    return one_image(folder, "x.gif", data[:-1] + frame_ * size + b";")


@bomb("GIF", 1 << 20, 64 << 20)
def gif_comments(folder: Path, size: int) -> Input:
    data = picture(form="GIF")
    at = data.index(b"\x2c")
    return one_image(folder, "x.gif", data[:at] + b"\x21\xfe" + b"\x01a" * (size // 2) + b"\0" + data[at:])


@bomb("TIFF", 1000, 300_000)
def tiff_directories(folder: Path, size: int) -> Input:
    data = bytearray(picture(form="TIFF"))
    (at,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, at)
    directory = bytes(data[at : at + 2 + 12 * count])
    struct.pack_into("<I", data, at + 2 + 12 * count, len(data))
    parts = [bytes(data)]
    place = len(data)
    for _ in range(size):
        place += len(directory) + 4
        parts.append(directory + struct.pack("<I", place))
    return one_image(folder, "x.tif", b"".join(parts))


@bomb("TIFF", 1000, 60_000)
def tiff_tags(folder: Path, size: int) -> Input:
    """Values that all are the same megabytes."""
    entries = [(256, 4, 1, 8), (257, 4, 1, 8), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, 8)]
    entries += [(277, 3, 1, 1), (278, 4, 1, 8), (279, 4, 1, 64)]
    big = 1 << 20
    place = 8 + 2 + 12 * (len(entries) + size) + 4
    entries += [(1000 + i, 3, big // 2, place) for i in range(size)]
    body = b"".join(struct.pack("<HHII", *one) for one in sorted(entries))
    data = b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(entries)) + body + bytes(4) + bytes(big)
    return one_image(folder, "x.tif", data)


@bomb("TIFF", 1000, 14_000)
def tiff_packed(folder: Path, size: int) -> Input:
    out = io.BytesIO()
    Image.new("L", (size, size)).save(out, "TIFF", compression="tiff_deflate")
    return one_image(folder, "x.tif", out.getvalue())


@bomb("WebP", 32 << 20, 1 << 30)
def webp_profile(folder: Path, size: int) -> Input:
    return one_image(folder, "x.webp", picture(form="WEBP", icc_profile=b"x" * (size >> 6)))


@bomb("WebP", 10, 200)
def webp_frames(folder: Path, size: int) -> Input:
    out = io.BytesIO()
    frames = [Image.new("RGB", (4000, 4000), (i % 256, 0, 0)) for i in range(min(size, 10))]
    frames[0].save(out, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    return one_image(folder, "x.webp", out.getvalue())


@bomb("BMP", 1000, 14_000)
def bmp_runs(folder: Path, size: int) -> Input:
    """Run lengths: a picture of any size in a few bytes."""
    head = struct.pack("<IiiHHIIiiII", 40, size, size, 1, 8, 1, 0, 0, 0, 256, 0)
    body = head + bytes(1024) + b"\xff\0" * 100 + b"\0\1"
    return one_image(folder, "x.bmp", b"BM" + struct.pack("<IHHI", 14 + len(body), 0, 0, 14 + 40 + 1024) + body)


@bomb("PPM", 1 << 20, 64 << 20)
def ppm_comment(folder: Path, size: int) -> Input:
    return one_image(folder, "x.ppm", b"P6\n#" + b"a" * size + b"\n8 8\n255\n" + bytes(192))


@bomb("PPM", 1000, 14_000)
def ppm_digits(folder: Path, size: int) -> Input:
    return one_image(folder, "x.ppm", b"P2\n%d %d\n255\n" % (size, size) + b"1 " * 1000)


@bomb("Photoshop", 100_000, 10_000_000)
def psd_layers(folder: Path, size: int) -> Input:
    head = b"8BPS" + struct.pack(">H6xHIIHH", 1, 3, 8, 8, 8, 3) + bytes(4)
    resources = (b"8BIM" + struct.pack(">HHI", 1005, 0, 0)) * (size // 12)
    data = head + struct.pack(">I", len(resources)) + resources + struct.pack(">I", 0) + struct.pack(">H", 0)
    return one_image(folder, "x.psd", data + bytes(192))


@bomb("JPEG 2000", 1000, 14_000)
def jp2_size(folder: Path, size: int) -> Input:
    out = io.BytesIO()
    Image.new("L", (size, size)).save(out, "JPEG2000")
    return one_image(folder, "x.jp2", out.getvalue())


@bomb("AVIF", 1000, 8_000)
def avif_size(folder: Path, size: int) -> Input:
    out = io.BytesIO()
    Image.new("RGB", (size, size)).save(out, "AVIF", speed=10)
    return one_image(folder, "x.avif", out.getvalue())


@bomb("mask_images", 1000, 8_000, **SEGMENTATION)
def mask_size(folder: Path, size: int) -> Input:
    """A mask of another size than its image."""
    for name in ("images", "masks"):
        (folder / name).mkdir()
        images(folder / name)
    out = io.BytesIO()
    Image.new("L", (size, size)).save(out, "PNG", optimize=True)
    (folder / "masks/1.png").write_bytes(out.getvalue())
    return {"images": "set/images", "labels": {"path": "set/masks", "format": "mask_images"}}


@bomb("class_folders", 100_000, 1 << 24)
def name_list(folder: Path, size: int) -> Input:
    """A list of classes that is longer than the classes."""
    given = one_image(folder, "x.png", picture(9))
    (folder / "classes.txt").write_bytes(b"a\n" * (size // 2))
    return {**given, "classes": "set/classes.txt"}
