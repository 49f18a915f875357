"""CreateMultipartUpload."""

from __future__ import annotations

from calque.gateway.body import checksums
from calque.gateway.content import map_of_headers
from calque.gateway.errors import S3Error
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call, answer
from calque.gateway.verbs.uploads.upload import ALGORITHM, KIND, encode_id


def create_multipart_upload(call: Call) -> Response:
    """Begin an upload in parts; what is told now is kept in the store, whoever completes it."""
    stored = map_of_headers(call.headers)
    asked = call.headers.get("x-amz-checksum-algorithm")
    headers = {}
    if asked:
        algorithm = checksums.algorithm_of(asked)
        kind = checksums.kind_for(algorithm, call.headers.get("x-amz-checksum-type"))
        stored |= {ALGORITHM: algorithm, KIND: kind}
        headers = {"x_amz_checksum_algorithm": algorithm, "x_amz_checksum_type": kind}
    elif "x-amz-checksum-type" in call.headers:
        raise S3Error(
            "InvalidRequest",
            "The x-amz-checksum-type header can only be used with x-amz-checksum-algorithm.",
        )
    upload = call.project.begin_multipart(
        call.bucket, call.key, metadata=stored, expires=call.expiry()
    )
    content = {"Bucket": call.bucket, "Key": call.key, "UploadId": encode_id(upload.id)}
    return answer("InitiateMultipartUploadResult", content, **headers)
