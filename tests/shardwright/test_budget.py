"""Budgets of what reading input may cost, and files of the real world that are near them."""

import gzip
import io
import json
import tarfile

import pytest
from PIL import Image, ImageCms

from shardwright.formats.tables import Table
from shardwright.formats.tar_files import read_members
from shardwright.images.decode import convert, decode, header_of
from shardwright.tfrecords.encode import encode_example
from shardwright.tfrecords.records import frame
from shardwright.tfrecords.scan import scan_records
from shardwright.untrusted.budget import Budget, OverBudget
from shardwright.untrusted.json_text import parse_untrusted_json

ANY = 200_000_000


def test_a_budget_grows_with_the_file():
    budget = Budget("values", objects=100, bytes_each=10, unpacked=1000, ratio=5, header=7)
    assert [budget.most_objects(size) for size in (10, 5000)] == [100, 500]
    assert [budget.most_unpacked(size) for size in (10, 5000)] == [1000, 25_000]
    budget.check_objects(500, 5000)
    budget.check_unpacked(25_000, 5000)
    budget.check_header(7, "head")
    with pytest.raises(OverBudget, match="more than 500 values in 5,000 bytes"):
        budget.check_objects(501, 5000)
    with pytest.raises(OverBudget, match="its 5,000 bytes unpack to more than 25,000"):
        budget.check_unpacked(25_001, 5000)
    with pytest.raises(OverBudget, match="the head has 8 bytes; at most 7 are read"):
        budget.check_header(8, "head")


def encoded(form, size=(64, 64), mode="RGB", **options):
    out = io.BytesIO()
    Image.new(mode, size).save(out, form, **options)
    return out.getvalue()


PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes().ljust(3 << 20, b"\0")
PAGES = [Image.new("RGB", (64, 64), (number, 0, 0)) for number in range(200)]
PICTURES = {
    "a printer's profile in a JPEG": encoded("JPEG", icc_profile=PROFILE),
    "a printer's profile in a PNG": encoded("PNG", icc_profile=PROFILE),
    "a large blank PNG": encoded("PNG", (8000, 8000), "1"),
    "a progressive JPEG": encoded("JPEG", (3000, 3000), progressive=True),
    "an animation": encoded("GIF", save_all=True, append_images=PAGES[:20]),
    "a scan of many pages": encoded("TIFF", save_all=True, append_images=PAGES, compression="tiff_lzw"),
    "a blank JPEG 2000": encoded("JPEG2000", (3000, 2000)),
    "a large TIFF of many strips": encoded("TIFF", (20, 60_000), "L", compression="raw", tiffinfo={278: 1}),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_near_the_budget_are_decoded(name):
    data = PICTURES[name]
    header = header_of(data, max_pixels=ANY, convert=True)
    picture = decode(data, header) if header is not None else convert(data, max_pixels=ANY)[0]
    assert picture.size[0] >= 20


def test_blank_images_shrink_to_a_thousandth_and_are_read():
    record = frame(encode_example({"image/encoded": encoded("BMP", (600, 600)), "image/class/text": b"a"}))
    packed = gzip.compress(record * 100)
    assert len(record) * 100 > 900 * len(packed)
    assert sum(found.payload is not None for found in scan_records(io.BytesIO(packed))) == 100


def test_headers_of_pax_and_gnu_are_read_as_tarfile_reads_them():
    for form, attributes in ((tarfile.PAX_FORMAT, {"SCHILY.xattr.user": "x" * 400}), (tarfile.GNU_FORMAT, {})):
        out = io.BytesIO()
        names = [f"{'ü' * 150}/{number}.jpg" for number in range(50)]
        with tarfile.open(fileobj=out, mode="w", format=form) as tar:
            for number, name in enumerate(names):
                info = tarfile.TarInfo(name)
                info.size, info.mtime, info.pax_headers = number, 1.5, attributes
                tar.addfile(info, io.BytesIO(bytes([number]) * number))
        for data in (out.getvalue(), gzip.compress(out.getvalue())):
            found = list(read_members(io.BytesIO(data), lambda member: member.kind == ""))
            assert found == [(name, bytes([number]) * number) for number, name in enumerate(names)]


def test_coco_with_boxes_alone_is_read():
    one = {"image_id": 1, "category_id": 1, "bbox": [1, 1, 20, 20], "id": 1, "iscrowd": 0, "area": 400}
    text = json.dumps({"annotations": [one] * 300_000})
    assert sum(map(text.count, "[{:")) > 2_000_000
    assert len(parse_untrusted_json(text)["annotations"]) == 300_000


def test_a_table_with_a_column_for_each_class_is_read(tmp_path):
    file = tmp_path / "a.csv"
    with file.open("w") as out:
        out.write("image," + ",".join(f"n{number:08d}" for number in range(21_841)) + "\n")
        out.write("a.png" + ",0" * 21_841 + "\n")
        out.write('"a,b.png"' + ",0" * 21_841 + "\n")
    assert [len(row.fields) for row in Table.open(str(file)).rows()] == [21_842, 21_842]


def test_a_quoted_field_may_have_any_number_of_delimiters(tmp_path):
    file = tmp_path / "a.csv"
    polygon = "[[" + ",".join(["1.5"] * 100_000) + "],\n[" + ",".join(["2.5"] * 100_000) + "]]"
    file.write_text(f'image,polygon\na.png,"{polygon}"\n')
    assert [row.fields for row in Table.open(str(file)).rows()] == [["a.png", polygon]]
