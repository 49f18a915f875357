"""``COPY INTO … FROM (SELECT …)``: Spark SQL between our reader and our writer."""
