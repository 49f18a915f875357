"""A served store whose clients reach its nodes by tokens."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import grpc

from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.metainfo import ApiKey
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.nodes.erasure import Redundancy
from calque.store.open_project import open_project
from calque.store.project import Project
from calque.store.relay.client import RelayedNode
from calque.store.serve import serve_store
from calque.store.uplink.grant import AccessGrant
from tests.store_client.world import BUCKET, SMALL, Clock


@dataclass
class Served:
    """A served store with two projects, and a way to speak to its relay by hand."""

    store: EmbeddedStore
    clock: Clock
    address: str
    channel: grpc.Channel
    mine: AccessGrant
    other: AccessGrant

    def open(self, grant: AccessGrant) -> Project:
        return open_project(self.address, access=grant, settings=SMALL)

    def node(self, grant: AccessGrant | ApiKey) -> RelayedNode:
        key = grant if isinstance(grant, ApiKey) else grant.api_key
        return RelayedNode(bytes(32), self.channel, bytes(key))

    def begin(self, grant: AccessGrant, **begin: object) -> pb.SegmentBeginResponse:
        """One segment of a new upload, begun by hand."""
        with self.open(grant) as project:
            session = project.session
            located = session.locate(BUCKET, f"by hand {os.urandom(4).hex()}")
            begun = session.metainfo.begin_object(
                pb.ObjectBeginRequest(
                    header=session.header,
                    bucket=BUCKET,
                    encrypted_object_key=located.encrypted,
                    encryption_parameters=pb.EncryptionParameters(
                        cipher_suite=pb.CIPHER_AES_256_GCM, block_size=1024
                    ),
                    **begin,  # type: ignore[arg-type]
                )
            )
            return session.metainfo.begin_segment(
                pb.SegmentBeginRequest(header=session.header, upload_id=begun.upload_id)
            )

    def listed(self, grant: AccessGrant, key: str) -> pb.Segment:
        with self.open(grant) as project:
            session = project.session
            located = session.locate(BUCKET, key)
            page = session.metainfo.list_segments(
                pb.SegmentListRequest(
                    header=session.header,
                    bucket=BUCKET,
                    encrypted_object_key=located.encrypted,
                )
            )
            return page.segments[0]

    def piece_count(self) -> int:
        return sum(1 for node in self.store.nodes.direct() for _ in node.pieces())


def committing(
    project: Project, begun: pb.SegmentBeginResponse, encrypted_size: int
) -> pb.SegmentCommitRequest:
    return pb.SegmentCommitRequest(
        header=project.session.header,
        segment_id=begun.segment_id,
        encrypted_key=bytes(48),
        encrypted_key_nonce=bytes(12),
        encrypted_size=encrypted_size,
        plain_size=100,
        pieces=[pb.Piece(number=each.number, node_id=each.node.id) for each in begun.pieces],
    )


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    clock = Clock()
    options = StoreOptions(redundancy=Redundancy.of(2, 3, share_size=1000))
    store = EmbeddedStore.create(folder, options, clock=clock)
    try:
        with serve_store(store) as served:
            target = served.address.removeprefix("grpc://")
            mine = replace(store.grant(), address=served.address)
            project = store.endpoint.admin.create_project("other")
            key = store.endpoint.admin.create_api_key(project.id)
            with grpc.insecure_channel(target) as channel:
                made = Served(
                    store, clock, served.address, channel, mine, replace(mine, api_key=key)
                )
                for grant in (made.mine, made.other):
                    with made.open(grant) as opened:
                        opened.create_bucket(BUCKET)
                yield made
    finally:
        store.close()
