"""The verbs of S3, one file each, in three folders: buckets, objects, uploads in parts."""
