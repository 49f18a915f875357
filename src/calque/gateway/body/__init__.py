"""The body of a request: a chain of readers, of which the last one must be content.

HTTP's framing → chunks of S3's own → signature → size, MD5 and checksums → the store.
"""
