"""What is known of one object."""

from __future__ import annotations

from collections.abc import Mapping

from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.uplink.encryption.access import Located
from calque.store.uplink.encryption.metadata import seal_metadata
from calque.store.uplink.etags import stream_of
from calque.store.uplink.objects import ObjectInfo, object_info
from calque.store.uplink.plain_names import name_missing_object
from calque.store.uplink.session import Session


def stat_object(session: Session, bucket: str, key: str) -> ObjectInfo:
    """The committed object with its metadata; NotFound when there is none."""
    located = session.locate(bucket, key)
    return object_info(_get_object(session, located), located)


def update_metadata(
    session: Session,
    bucket: str,
    key: str,
    metadata: Mapping[str, str],
    *,
    if_match: str | None = None,
) -> ObjectInfo:
    """Replace the metadata of an object in one transaction; its bytes are untouched.

    Without ``if_match`` the object that is there now is meant, and one that replaces it before
    the transaction makes it fail.
    """
    located = session.locate(bucket, key)
    found = _get_object(session, located)
    sealed = seal_metadata(found.encryption_parameters.cipher_suite, located, metadata)
    updated = session.metainfo.update_object_metadata(
        pb.ObjectUpdateMetadataRequest(
            header=session.header,
            bucket=bucket,
            encrypted_object_key=located.encrypted,
            stream_id=stream_of(if_match) or found.stream_id,
            encrypted_metadata_nonce=sealed.nonce,
            encrypted_metadata=sealed.encrypted,
            encrypted_metadata_encrypted_key=sealed.wrapped_key,
        )
    )
    return object_info(updated.object, located)


def _get_object(session: Session, located: Located) -> pb.Object:
    request = pb.ObjectGetRequest(
        header=session.header, bucket=located.bucket, encrypted_object_key=located.encrypted
    )
    with name_missing_object(located):
        return session.metainfo.get_object(request).object
