"""Upload an object in one go."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

from calque.errors import CalqueError
from calque.store.callers import act_for_caller
from calque.store.chunks import ChunkReader, Data
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.timestamps import as_timestamp, as_utc
from calque.store.uplink.encryption.access import Located
from calque.store.uplink.encryption.metadata import GivenMetadata, seal_metadata
from calque.store.uplink.etags import stream_of
from calque.store.uplink.objects import ObjectInfo, object_info
from calque.store.uplink.segments.write_segments import Upload, write_segments
from calque.store.uplink.session import Session
from calque.store.uplink.verbs.put_inline import Commit, put_inline
from calque.store.uplink.verbs.put_whole import may_put_whole, put_whole
from calque.values.metadata import EMPTY

_log = logging.getLogger(__name__)


def upload_object(
    session: Session,
    bucket: str,
    key: str,
    data: Data,
    *,
    metadata: GivenMetadata = EMPTY,
    expires: datetime | None = None,
    if_not_exists: bool = False,
    if_match: str | None = None,
) -> ObjectInfo:
    """Store bytes as an object, replacing what is there in one transaction.

    ``metadata`` may be a function: it is called once the last byte was read, and what it raises
    ends the upload. Nothing is visible before the commit. After any failure the upload is given
    up; a killed process leaves a pending upload that the satellite sweeps. Conditions are checked
    in the committing transaction.
    """
    commit = Commit(metadata, if_not_exists, stream_of(if_match))
    located = session.locate(bucket, key)
    source = ChunkReader(data)
    try:
        if source.fill(session.limits.inline_size + 1) <= session.limits.inline_size:
            return put_inline(session, located, source, expires, commit)
        if may_put_whole(session, source):
            return put_whole(session, located, source, expires, commit)
        return _upload_segments(session, located, source, expires, commit)
    finally:
        source.close()


def _upload_segments(
    session: Session,
    located: Located,
    source: ChunkReader,
    expires: datetime | None,
    commit: Commit,
) -> ObjectInfo:
    known, late = (EMPTY, commit.metadata) if callable(commit.metadata) else (commit.metadata, None)
    upload = begin_upload(session, located, known, expires)
    try:
        write_segments(session, upload, source)
        return commit_upload(
            session,
            upload,
            metadata=late() if late else None,
            if_not_exists=commit.if_not_exists,
            if_match=commit.if_match,
        )
    except BaseException:  # Ctrl-C too, or it would stay pending for a day
        give_up(session, upload)
        raise


def begin_upload(
    session: Session, located: Located, metadata: Mapping[str, str], expires: datetime | None
) -> Upload:
    """Open an upload at the satellite, with its metadata."""
    parameters = session.settings.encryption
    sealed = seal_metadata(parameters.suite, located, metadata)
    begun = session.metainfo.begin_object(
        pb.ObjectBeginRequest(
            header=session.header,
            bucket=located.bucket,
            encrypted_object_key=located.encrypted,
            expires_at=as_timestamp(expires),
            encryption_parameters=parameters.message(),
            encrypted_metadata_nonce=sealed.nonce,
            encrypted_metadata=sealed.encrypted,
            encrypted_metadata_encrypted_key=sealed.wrapped_key,
        )
    )
    # The nodes are told the same moment as the satellite.
    until = as_utc(expires) if expires is not None else None
    return Upload(begun.upload_id, located, parameters, until)


def commit_upload(
    session: Session,
    upload: Upload,
    *,
    metadata: Mapping[str, str] | None = None,
    parts: Sequence[int] | None = None,
    joined_keys: Sequence[pb.EncryptedKeyAndNonce] = (),
    if_not_exists: bool = False,
    if_match: bytes = b"",
) -> ObjectInfo:
    """Make the upload the object at its key; ``metadata`` replaces what it began with.

    Of an upload in ``parts`` only these become the object.
    """
    sealed = seal_metadata(upload.parameters.suite, upload.located, metadata or EMPTY)
    committed = session.metainfo.commit_object(
        pb.ObjectCommitRequest(
            header=session.header,
            upload_id=upload.id,
            override_metadata=metadata is not None,
            encrypted_metadata_nonce=sealed.nonce,
            encrypted_metadata=sealed.encrypted,
            encrypted_metadata_encrypted_key=sealed.wrapped_key,
            if_not_exists=if_not_exists,
            if_match_stream_id=if_match,
            only_parts=parts is not None,
            part_numbers=parts,
            joined_keys=joined_keys,
        )
    )
    return object_info(committed.object, upload.located)


def give_up(session: Session, upload: Upload) -> None:
    """Abort an upload; where the satellite does not answer, its sweep does it later."""
    request = pb.ObjectAbortRequest(header=session.header, upload_id=upload.id)
    try:
        # Also when the caller has hung up: that may be why the upload is aborted.
        with act_for_caller(None):
            session.metainfo.abort_object(request)
    except CalqueError as error:
        _log.warning("an upload to %s could not be aborted: %s", upload.located.bucket, error)
