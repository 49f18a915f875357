"""What was done: a row for each object, totals, and progress on the way."""
