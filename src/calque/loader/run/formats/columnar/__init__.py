"""Formats that have typed columns already: Parquet, ORC, Avro."""
