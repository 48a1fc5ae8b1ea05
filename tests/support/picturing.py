"""Shared by the tests of images: pictures, and the metadata that cameras write."""

from PIL import Image

GPS = {1: "N", 2: (52.0, 30.0, 1.5), 3: "E", 4: (13.0, 22.0, 40.0)}
MAIN = {
    0x010F: "Maker",
    0x0110: "Model 3",
    0x0112: 6,
    0x010E: "my son",
    0x013B: "Ann Author",
    0x0132: "2020:01:02 03:04:05",
}
CAMERA = {
    0x829A: 0.004,
    0x8827: 200,
    0x927C: b"maker's secret",
    0xA431: "SERIAL-77",
    0x9286: b"ASCII\0\0\0note",
    0xA434: "50mm",
}


def pillow_exif(main=(), camera=(), gps=(), order="<"):
    exif = Image.Exif()
    exif.endian = order
    exif.update(dict(main))
    if camera:
        exif.get_ifd(0x8769).update(dict(camera))
    if gps:
        exif.get_ifd(0x8825).update(dict(gps))
    return exif.tobytes().removeprefix(b"Exif\0\0")


# The displayed part of a stored picture, by orientation.
DISPLAYED = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.T,
    6: lambda a: a.T[:, ::-1],
    7: lambda a: a.T[::-1, ::-1],
    8: lambda a: a.T[::-1],
}
