"""Pascal VOC's XML: boxes by their edges, and untrusted XML can do nothing but be refused."""

import gc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.errors import AnnotationError
from shardwright.formats.object_content import Thing
from shardwright.formats.voc_xml import read_voc
from shardwright.images.boxes import Box

CAT = """<object><name>cat</name><pose>Left</pose><truncated>1</truncated><difficult>0</difficult>
  <bndbox><xmin>1</xmin><ymin>11</ymin><xmax>40</xmax><ymax>20.5</ymax></bndbox>
  <part><name>head</name><bndbox><xmin>5</xmin><ymin>5</ymin><xmax>6</xmax><ymax>6</ymax></bndbox></part>
</object>"""
DOG = """<object><name>dog</name><bndbox><ymax>2</ymax><ymin>2</ymin><xmax>3</xmax><xmin>3</xmin></bndbox></object>"""
SIZE = "<size><width>40</width><height>20</height><depth>3</depth></size>"


def document(*parts, head=""):
    return f"{head}<annotation><filename>../../x.jpg</filename>{''.join(parts)}</annotation>".encode()


def test_boxes_count_from_1_and_mean_the_last_pixel_too():
    found = read_voc(document(SIZE, CAT, DOG))
    assert found.size == (20, 40)
    assert found.things == [
        Thing("cat", None, Box(0, 10, 40, 20.5), {"difficult": 0, "truncated": 1}),
        Thing("dog", None, Box(2, 1, 3, 2), {"difficult": 0, "truncated": 0}),
    ]


@pytest.mark.parametrize("size", ["", SIZE.replace("40", "0").replace("20", "0"), SIZE.replace("40", "-1")])
def test_a_size_that_labelimg_does_not_know_is_unknown(size):
    assert read_voc(document(size, DOG)).size is None


def test_files_leave_no_cycles():
    """A survey stops the search for cycles, so what reading each file leaves would stay in memory."""
    gc.collect()
    gc.disable()
    try:
        for i in range(100):
            with suppress(AnnotationError):
                read_voc(document(SIZE, CAT, DOG, "" if i % 2 else "<broken"))
        assert gc.collect() < 100
    finally:
        gc.enable()


def test_the_encoding_of_the_file_counts():
    latin = document(SIZE, DOG.replace("dog", "Käfer"), head="<?xml version='1.0' encoding='latin-1'?>")
    assert read_voc(latin.decode().encode("latin-1")).things[0].label == "Käfer"


BOMB = "<!DOCTYPE a [<!ENTITY b '" + "x" * 50 + "'><!ENTITY c '&b;&b;&b;&b;'>]>"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not XML"),
        (b"\xff\xd8\xff\xe0", "not XML"),
        (document(SIZE)[:-5], "not XML"),
        (document(SIZE, head="<?xml version='1.0' encoding='no-such'?>"), "not XML"),
        (document(SIZE, DOG.replace("dog", "&c;"), head=BOMB), "document type"),
        (document(SIZE, head="<!DOCTYPE a SYSTEM 'file:///etc/passwd'>"), "document type"),
        (document(SIZE, head="<!DOCTYPE a>").decode().encode("utf-16"), "document type"),
        (document(SIZE.replace("40", "4.5")), "size: width is '4.5', not a number of pixels"),
        (document(SIZE, DOG.replace("dog", " ")), "object 1: name is '', not a name"),
        (document(SIZE, CAT, DOG.replace("<xmin>3", "<xmin>three")), "object 2: xmin is 'three', not a number"),
        (document(SIZE, CAT.replace("<ymax>20.5", "<ymax>1e999")), "object 1: ymax is '1e999'"),
        (document("<a>" * 20 + "</a>" * 20), "more than 16 deep"),
    ],
    ids=range(12),
)
def test_another_file_is_refused_with_the_reason(data, message):
    with pytest.raises(AnnotationError, match=message) as caught:
        read_voc(data)
    assert caught.value.code == "bad_xml"


@given(st.binary(max_size=40), st.integers(0, 400))
def test_damaged_bytes_raise_nothing_else(noise, place):
    data = document(SIZE, CAT)
    try:
        read_voc(data[:place] + noise + data[place + len(noise) :])
    except AnnotationError:
        return
