"""The Spark session, and how a plan becomes tasks."""
