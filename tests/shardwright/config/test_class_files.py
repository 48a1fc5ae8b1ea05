"""`input.classes`: in every spelling the same names and ids; contradictions are refused."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.config import parse_config
from shardwright.config.class_tables import read_classes
from shardwright.errors import ConfigError, UsageError
from shardwright.formats.classes import check_names

NAMES = (
    st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1)
    .map(str.strip)
    .filter(lambda name: name and not name.lstrip("+-").isdigit() and not name.startswith("#"))
)
MAPS = st.dictionaries(NAMES, st.integers(-(10**6), 10**6), min_size=1, max_size=6).filter(
    lambda ids: len(set(ids.values())) == len(ids)
)


def in_order(ids):
    return sorted(ids.items(), key=lambda item: item[1])


@given(MAPS)
def test_names_and_ids_are_the_same_in_every_spelling(tmp_path_factory, ids):
    base = tmp_path_factory.mktemp("classes")
    spellings = [ids, {number: name for name, number in ids.items()}]
    for i, content in enumerate(
        (ids, {str(v): k for k, v in ids.items()}, [{"id": v, "name": k, "color": 1} for k, v in ids.items()])
    ):
        (base / f"{i}.json").write_text(json.dumps(content), encoding="utf-8-sig")
        spellings.append(f"{i}.json")
    rows = [list(map(str, pair)) for pair in ids.items()]
    for i, (header, step) in enumerate(((None, 1), (None, -1), (["name", "id"], 1), (["label", "class"], -1))):
        text = io.StringIO()
        csv.writer(text).writerows([*([header] if header else []), *(row[::step] for row in rows)])
        (base / f"{i}.csv").write_text(text.getvalue(), encoding="utf-8")
        spellings.append(f"{i}.csv")
    for spelling in spellings:
        assert list(read_classes(spelling, str(base)).items()) == in_order(ids)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("id,name\n0,daisy\n1,rose\n", {"daisy": 0, "rose": 1}),
        ("Label Name,Label ID\r\ndaisy,7\r\n", {"daisy": 7}),
        ("\ufeff0,daisy\n", {"daisy": 0}),
        ('name,id\n"a, b",1\n', {"a, b": 1}),
        ("class_id,class_name\n3,1987\n4,2001\n", {"1987": 3, "2001": 4}),
        ("name,code\n1987,3\n", {"1987": 3}),
        ("1987,3\n", {"1987": 3}),
        ("sky,#0000ff\nroad,#ff0000\n", {"sky": (1 << 24) + 0xFF, "road": (1 << 24) + 0xFF0000}),
        ("daisy\n\nrose\n", {"daisy": None, "rose": None}),
        ("sky,128128\nroad,804080\n", {"sky": 128128, "road": 804080}),
        ('item {\n  id: 1\n  name: \'a "b"\'\n}\nitem { name: "c" id: 2 display_name: "d" }\n', {'a "b"': 1, "c": 2}),
    ],
)
def test_tables_of_classes(tmp_path, text, ids):
    (tmp_path / "c.csv").write_text(text, encoding="utf-8")
    assert read_classes("c.csv", str(tmp_path)) == ids


@pytest.mark.parametrize("line", ["0 0.5 0.5 0.2 0.2", "3 0.25 0.75", "1 12 30 14 2", "0.5"])
def test_lines_of_numbers_name_no_class(tmp_path, line):
    (tmp_path / "c.txt").write_text(f"{line}\n", encoding="utf-8")
    try:
        found = read_classes("c.txt", str(tmp_path))
    except ConfigError:
        return
    assert found == {line: None}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({0: "daisy", 1: "daisy"}, "'daisy' is there twice"),
        ({"daisy": 1, "rose": 1}, "two classes share an id: 'daisy' and 'rose' have 1"),
        ({"0": "daisy", "00": "rose"}, "'daisy' and 'rose' have 0"),
        ({"daisy": "x"}, r"input\.classes\.daisy: 'x' is not a whole number"),
        ({0: "daisy", "x": "rose"}, "'daisy' is not a whole number"),
        ({"daisy": 1.5}, "1.5 is not a whole number"),
        ({"daisy": True}, "True is not a whole number"),
        (["a", "a"], "'a' is there twice"),
        ([1], r"input\.classes\[0\]: 1 is not a text"),
        ([{"id": 1}], r"input\.classes\[0\]: .* has no id or no name"),
        ([{"id": 1, "name": "a"}, {"id": 2, "name": "a"}], "'a' is there twice"),
        (3, "3 is neither a list nor a mapping"),
    ],
)
def test_contradictions_are_refused(raw, message):
    with pytest.raises(ConfigError, match=message):
        read_classes(raw, "/")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.json", "{", "'c.json' is not JSON"),
        ("c.json", '{"0": "a", "0": "b"}', "'0' is there twice"),
        ("c.json", "[" * 10**5, "is not JSON"),
        ("c.csv", "a,b\nc,d\n", "does not contain `name,id` rows"),
        ("c.csv", "name,id\n", "does not contain `name,id` rows"),
        ("c.csv", "a,1,2\n", "does not contain `name,id` rows"),
        ("c.csv", "x,y\n1,2\n3,4\n", "has two columns of numbers.*Call them `name` and `id`"),
        ("c.csv", "a,1\na,2\n", "'a' is there twice"),
    ],
)
def test_files_that_do_not_do_are_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_classes(name, str(tmp_path))


@pytest.mark.parametrize("name", ["\ud83d\ude00", "a\ud800", "a\nb", "a\0"])
def test_names_that_no_feature_can_have_are_refused_wherever_they_come_from(name):
    """JSON and YAML can spell halves of characters, which no UTF-8 holds."""
    with pytest.raises(ConfigError, match=r"input\.classes: .* cannot be part of a feature's name"):
        parse_config({"input": {"images": "x", "classes": ["b", name]}}, base="/")
    with pytest.raises(UsageError, match=r"f\.json: the class .* cannot be part of a feature's name"):
        check_names({name: "f.json"})


ROAD, CAR = (1 << 24) + 0x804080, (1 << 24) + 0x00008E


@pytest.mark.parametrize(
    "text",
    [
        "name,color\nroad,#804080\ncar,#00008e\n",
        'Label,color_rgb\nroad,"128,64,128"\ncar,"0, 0, 142"\n',
        "color,class\n(128 64 128),road\nrgb(0;0;142),car\n",
        "label,Hex\nroad,804080\ncar,0x00008E\n",
        "id,name,r,g,b\n0,road,128,64,128\n1,car,0,0,142\n",
        "Name,Red,Green,Blue,note\nroad,128,64,128,x\ncar,0,0,142,\n",
        "road,128,64,128\ncar,0,0,142\n",
        'road,"[128, 64, 128]"\ncar,"[0, 0, 142]"\n',
        "128 64 128\troad\n0 0 142\t\tcar\n",
    ],
)
def test_colors_of_classes_are_the_same_in_every_spelling(tmp_path, text):
    (tmp_path / "classes.csv").write_text(text)
    assert read_classes("classes.csv", str(tmp_path)) == {"road": ROAD, "car": CAR}


def test_colors_of_classes_in_json(tmp_path):
    (tmp_path / "classes.json").write_text('{"road": [128, 64, 128], "car": "#00008e"}')
    assert read_classes("classes.json", str(tmp_path)) == {"road": ROAD, "car": CAR}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,color\nroad,#804080\nroad,#00008e\n", "'road' is there twice"),
        ("name,color\nroad,blue\n", "'road': 'blue' is not a color. Write e.g. #804080, or 128,64,128"),
        ('name,color\nroad,"300,0,0"\n', "'300,0,0' is not a color"),
        ("name,r,g,b\nroad,1,2\n", "is not a name and a color"),
        ("item {\n id: 1\n}\n", "has no id or no name"),
    ],
)
def test_colors_that_are_none_are_refused_by_name(tmp_path, text, message):
    (tmp_path / "classes.csv").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_classes("classes.csv", str(tmp_path))
