"""How staged files are read: formats, compression, strict casts, exact positions.

Data goes one way: :mod:`source` (pinned bytes, hashed) → :mod:`compression` → :mod:`feed` (UTF-8) →
a reader (``csv_reader``, ``json_reader`` …) → :mod:`shape` (:mod:`cast`, :mod:`text_cast`) →
:class:`~calque.load.formats.reading.Parsed` rows and refused records.

Invariants: every record of a file is either a row or one refused record; a refused record has a
position; nothing is changed on the way, only taken or refused.
"""

from calque.load.formats.reading import Parsed, Reader, ReadSpec
from calque.load.formats.registry import open_reader
from calque.load.formats.reject import Code, FileRefused
from calque.load.formats.source import Source

__all__ = ["Code", "FileRefused", "Parsed", "ReadSpec", "Reader", "Source", "open_reader"]
