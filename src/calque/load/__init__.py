"""Files into tables, each exactly once."""
