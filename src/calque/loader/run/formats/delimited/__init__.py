"""Text in records that end with a delimiter: what CSV and NDJSON have in common.

``open_buffer`` (plain UTF-8) → ``blocks`` (cut where a record ends) → ``dialect`` (where each
record and each field begins) with ``escapes`` (what an escape means).
"""
