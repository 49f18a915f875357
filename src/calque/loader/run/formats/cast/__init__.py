"""Strict casts: a value arrives in its column unchanged, or its cell is refused with a reason.

``row_caster`` makes rows of the table out of parsed columns. Each column goes through ``columns``
(typed values), ``text`` (with ``explain``, which says why a text does not fit) or ``python_values``
(with ``nested``). ``rules`` are the options that speak of values; ``result`` is what a cast gives.
``infer_types`` and ``numerals`` go the other way: the narrowest type that keeps what was seen.
``arrow_quirks`` knows the numbers that pyarrow gets wrong without a word.

No module here reads a file: casts are the same whatever the format.
"""
