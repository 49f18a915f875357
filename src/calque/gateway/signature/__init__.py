"""Who sent a request: Signature Version 4 in all its forms, presigned Version 2, POST policies.

``canonical`` is what all of Version 4 share; ``header``, ``presigned`` and ``presigned_v2`` are
one form each; ``chunks`` verifies a body that is signed as it comes; ``authenticate`` chooses.
"""
