"""How lines of a table become rows."""

import csv
import io

import pytest

from shardwright.formats import tables


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n",
        'a,b\r\n"1\n2",3\r\n4,5',
        "a,b\n\n , \n1,\n",
        'a,b\n"x ""y""",2\r3,4\n',
        ",\n",
        '"a,b"\n',
        "a\n" + '"' * 5,
    ],
)
def test_lines_without_quotes_are_split_as_the_general_reader_splits_them(text):
    lines = io.StringIO(text, newline="")
    found = list(tables._split_lines(iter(lines.readline, ""), ","))
    reader = csv.reader(io.StringIO(text, newline=""))
    assert [fields or [""] for _, fields in found] == [fields or [""] for fields in reader]
    assert sum(count for count, _ in found) == reader.line_num
