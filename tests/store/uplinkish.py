"""The messages a client sends, without any encryption: random keys, random bytes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from calque.store.metainfo import ApiKey, Metainfo
from calque.store.metainfo.pb import metainfo_pb2 as pb

AES = pb.EncryptionParameters(cipher_suite=pb.CIPHER_AES_256_GCM, block_size=4096)


@dataclass
class Client:
    """A satellite, seen with one API key."""

    satellite: Metainfo
    api_key: ApiKey

    @property
    def header(self) -> pb.RequestHeader:
        return pb.RequestHeader(api_key=bytes(self.api_key))

    def restricted(self, **restrictions: Any) -> Client:
        return Client(self.satellite, self.api_key.restrict(**restrictions))

    def bucket(self, name: str) -> None:
        self.satellite.create_bucket(pb.BucketCreateRequest(header=self.header, name=name))

    def begin(self, key: bytes, bucket: str = "first") -> pb.ObjectBeginResponse:
        return self.satellite.begin_object(
            pb.ObjectBeginRequest(
                header=self.header,
                bucket=bucket,
                encrypted_object_key=key,
                encryption_parameters=AES,
            )
        )

    def remote(self, upload_id: bytes, index: int = 0, size: int = 100) -> bytes:
        """Commit a remote segment; returns its root piece id."""
        begun = self.satellite.begin_segment(
            pb.SegmentBeginRequest(
                header=self.header,
                upload_id=upload_id,
                position=pb.SegmentPosition(part_number=0, index=index),
            )
        )
        self.satellite.commit_segment(
            pb.SegmentCommitRequest(
                header=self.header,
                segment_id=begun.segment_id,
                encrypted_key_nonce=os.urandom(12),
                encrypted_key=os.urandom(48),
                encrypted_size=size + 16,
                plain_size=size,
                pieces=[
                    pb.Piece(number=piece.number, node_id=piece.node.id) for piece in begun.pieces
                ],
            )
        )
        return begun.root_piece_id

    def inline(self, upload_id: bytes, index: int, data: bytes) -> None:
        self.satellite.make_inline_segment(
            pb.SegmentMakeInlineRequest(
                header=self.header,
                upload_id=upload_id,
                position=pb.SegmentPosition(part_number=0, index=index),
                encrypted_key_nonce=os.urandom(12),
                encrypted_key=os.urandom(48),
                inline_data=data,
                plain_size=len(data),
            )
        )

    def commit(self, upload_id: bytes, **fields: Any) -> pb.Object:
        return self.satellite.commit_object(
            pb.ObjectCommitRequest(header=self.header, upload_id=upload_id, **fields)
        ).object

    def upload(self, key: bytes, segments: int = 1, bucket: str = "first") -> pb.Object:
        upload_id = self.begin(key, bucket).upload_id
        for index in range(segments):
            self.remote(upload_id, index)
        return self.commit(upload_id)

    def get(self, key: bytes, bucket: str = "first") -> pb.Object:
        return self.satellite.get_object(
            pb.ObjectGetRequest(header=self.header, bucket=bucket, encrypted_object_key=key)
        ).object

    def segments(self, key: bytes, bucket: str = "first", **fields: Any) -> pb.SegmentListResponse:
        return self.satellite.list_segments(
            pb.SegmentListRequest(
                header=self.header, bucket=bucket, encrypted_object_key=key, **fields
            )
        )

    def delete(self, key: bytes, bucket: str = "first", **fields: Any) -> pb.ObjectDeleteResponse:
        return self.satellite.delete_object(
            pb.ObjectDeleteRequest(
                header=self.header, bucket=bucket, encrypted_object_key=key, **fields
            )
        )

    def begin_copy(
        self, key: bytes, new_key: bytes, bucket: str = "first", new_bucket: str = "first", **f: Any
    ) -> pb.ObjectBeginCopyResponse:
        return self.satellite.begin_copy_object(
            pb.ObjectBeginCopyRequest(
                header=self.header,
                bucket=bucket,
                encrypted_object_key=key,
                new_bucket=new_bucket,
                new_encrypted_object_key=new_key,
                **f,
            )
        )

    def finishing(
        self, begun: pb.ObjectBeginCopyResponse, new_key: bytes, new_bucket: str = "first"
    ) -> pb.ObjectFinishCopyRequest:
        return pb.ObjectFinishCopyRequest(
            header=self.header,
            operation_id=begun.operation_id,
            stream_id=begun.stream_id,
            new_bucket=new_bucket,
            new_encrypted_object_key=new_key,
            new_segment_keys=rewrapped(begun.segment_keys),
        )

    def copy(self, key: bytes, new_key: bytes, **places: str) -> pb.Object:
        begun = self.begin_copy(key, new_key, **places)
        new_bucket = places.get("new_bucket", "first")
        request = self.finishing(begun, new_key, new_bucket)
        return self.satellite.finish_copy_object(request).object

    def move(self, key: bytes, new_key: bytes) -> pb.Object:
        begun = self.satellite.begin_move_object(
            pb.ObjectBeginMoveRequest(
                header=self.header,
                bucket="first",
                encrypted_object_key=key,
                new_bucket="first",
                new_encrypted_object_key=new_key,
            )
        )
        return self.satellite.finish_move_object(
            pb.ObjectFinishMoveRequest(
                header=self.header,
                operation_id=begun.operation_id,
                stream_id=begun.stream_id,
                new_bucket="first",
                new_encrypted_object_key=new_key,
                new_segment_keys=rewrapped(begun.segment_keys),
            )
        ).object

    def keys(self, prefix: bytes = b"", bucket: str = "first", **fields: Any) -> list[bytes]:
        page = self.satellite.list_objects(
            pb.ObjectListRequest(
                header=self.header,
                bucket=bucket,
                encrypted_prefix=prefix,
                recursive=True,
                **fields,
            )
        )
        return [item.encrypted_object_key for item in page.items]


def rewrapped(keys: Any) -> list[pb.EncryptedKeyAndNonce]:
    """New random keys at the same positions."""
    return [
        pb.EncryptedKeyAndNonce(
            position=key.position,
            encrypted_key_nonce=os.urandom(12),
            encrypted_key=os.urandom(48),
        )
        for key in keys
    ]
