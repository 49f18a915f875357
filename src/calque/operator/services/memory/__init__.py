"""Objects in this process's memory: strict, thread-safe, with versions and multipart copies."""
