"""What follows a committed load: purge, archive, upkeep of records, expiry."""
