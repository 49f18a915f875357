"""How staged files are read: formats, compression, strict casts, exact positions.

Data goes one way: ``staged_source`` (pinned bytes, hashed) → ``compression`` → ``byte_buffer``
(UTF-8) → a reader (``csv`` and ``json``, both over ``delimited``; ``columnar``, ``xml``) →
``column_map`` (which column fills which) → ``cast`` →
:class:`~calque.loader.run.formats.reader.ParsedBatch`: rows and refused records. ``guard`` stands
around every reader, so that whatever a library raises refuses one file and nothing more.

Invariants: every record of a file is either a row or one refused record; a refused record has a
position; nothing is changed on the way, only taken or refused.

A new format is:

1. its options, a class in ``model/file_formats.py`` that joins ``FormatOptions`` there, and how SQL
   and keywords name them in ``request/options.py``;
2. a module here (a package where it has several) with a class that is a
   :class:`~calque.loader.run.formats.reader.Reader` and a function ``infer_schema(source,
   format)``; ``columnar/orc.py`` is the shortest to copy the shape of;
3. its two lines in ``registry.py``, and its file extensions in ``plan/make_plan.py``;
4. its name in ``pyproject.toml`` beside ``csv | json | columnar | xml``: formats do not know each
   other;
5. ``tests/loader/run/formats/test_<name>.py``, and a sound file in ``SEEDS`` of ``mutants.py``
   there, which the fuzz test then damages.

Text that is cut into records by a delimiter finds blocks, records and positions in ``delimited``. A
library that a damaged file can crash goes into ``CRASH_PRONE`` of ``registry.py``.
"""

from calque.loader.run.formats.reader import ParsedBatch, Reader, ReadSpec
from calque.loader.run.formats.refusal import Code, FileRefused
from calque.loader.run.formats.registry import open_reader
from calque.loader.run.formats.staged_source import Source

__all__ = ["Code", "FileRefused", "ParsedBatch", "ReadSpec", "Reader", "Source", "open_reader"]
