"""XML: every element of one name is a row, and no document is trusted."""

from __future__ import annotations

import pyarrow as pa
import pytest

from calque.loader.model.file_formats import XmlFormat
from calque.loader.run.formats import Code, FileRefused
from tests.loader.run.formats.conftest import Read

XML = b"""<?xml version="1.0"?>
<rows>
  <row id="1"><b>x &amp; y</b><in><c>5</c></in></row>
  <row id="q"><b/></row>
</rows>
"""


def test_rows_and_their_places(read: Read) -> None:
    """Attributes, children and grandchildren are columns; a bad value has its line."""
    fields = [("_id", pa.int64()), ("b", pa.string()), ("in.c", pa.int64())]
    result = read(XML, XmlFormat(), fields, match="name", name="f.xml")
    assert result.rows == [{"_id": 1, "b": "x & y", "in.c": 5}]
    (error,) = result.errors
    assert (error.code, error.line, error.record, error.column) == (Code.INVALID_VALUE, 4, 2, "_id")


def test_entities_are_refused(read: Read) -> None:
    """Broken XML and entity declarations are refused with their line."""
    bomb = b'<?xml version="1.0"?>\n<!DOCTYPE r [<!ENTITY a "aaaa">]>\n<rows>&a;</rows>'
    for data in (XML[:-10], bomb):
        with pytest.raises(FileRefused) as caught:
            read(data, XmlFormat(), [("b", pa.string())], match="name", name="f.xml")
        assert caught.value.row_error.line > 1
