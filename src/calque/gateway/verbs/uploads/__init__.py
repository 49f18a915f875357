"""The verbs of S3 on uploads."""
