"""What was loaded already: the meta service of loads, on SQLite or PostgreSQL."""
