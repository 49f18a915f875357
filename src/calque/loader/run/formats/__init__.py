"""How staged files are read: formats, compression, strict casts, exact positions.

Data goes one way: ``staged_source`` (pinned bytes, hashed) → ``compression`` → ``byte_buffer``
(UTF-8) → a reader (``csv``, ``json``, ``columnar``, ``xml``) → ``cast`` →
:class:`~calque.loader.run.formats.reader.Parsed` rows and refused records.

Invariants: every record of a file is either a row or one refused record; a refused record has a
position; nothing is changed on the way, only taken or refused.
"""

from calque.loader.run.formats.reader import ParsedBatch, Reader, ReadSpec
from calque.loader.run.formats.refusal import Code, FileRefused
from calque.loader.run.formats.registry import open_reader
from calque.loader.run.formats.staged_source import Source

__all__ = ["Code", "FileRefused", "ParsedBatch", "ReadSpec", "Reader", "Source", "open_reader"]
