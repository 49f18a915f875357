"""What is done: ranges of keys, the copies of their objects, and deletes last of all."""
