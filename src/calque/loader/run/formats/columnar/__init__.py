"""Formats that bring a schema: Parquet, ORC and Avro.

``batch_caster`` maps the columns of a file to those of the table and casts them; Avro has records
and no columns, and is cast value by value.
"""
