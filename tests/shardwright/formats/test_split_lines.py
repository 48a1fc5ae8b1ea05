"""How lines of a table become rows."""

import csv
import io

import pytest

from shardwright.formats.tables import Table


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n",
        'a,b\r\n"1\n2",3\r\n4,5',
        "a,b\n\n , \n1,\n",
        'a,b\n"x ""y""",2\r3,4\n',
        "a,b\r1,2\r\r3,4",
        "a\n" + '"' * 5,
    ],
)
def test_lines_without_quotes_are_split_as_the_general_reader_splits_them(text):
    rows, reader, begin = [], csv.reader(io.StringIO(text, newline="")), 1
    for fields in reader:
        if any(map(str.strip, fields)):
            rows.append((begin, fields))
        begin = reader.line_num + 1
    assert [(row.line, row.fields) for row in Table.open("t.csv", text.encode()).rows()] == rows[1:]
    assert len(rows) > 1
