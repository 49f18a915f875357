"""The object store whose copies are one metadata transaction."""
