"""What every verb of the client needs: the satellite, the keys, the nodes, the settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from calque.errors import InvalidInput
from calque.store.metainfo import Metainfo
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.nodes.download import PATIENCE, SILENCE
from calque.store.nodes.erasure import Redundancy
from calque.store.nodes.node import NodeDirectory, PieceHolder
from calque.store.nodes.upload import Patience
from calque.store.uplink.encryption.access import EncryptionAccess, Located
from calque.store.uplink.encryption.blocks import EncryptionParameters
from calque.store.uplink.encryption.folder_keys import FolderKeys
from calque.store.uplink.kept_uploads import KeptUploads
from calque.store.uplink.levels import LevelCache
from calque.values import MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class UplinkSettings:
    """How new objects are made and how long slow nodes are waited for.

    ``segment_size`` and ``inline_size`` are plain bytes, and never more than the satellite allows.
    Objects that exist are read as they were written, whatever stands here.
    """

    segment_size: int = 64 * MIB
    inline_size: int = 4096
    encryption: EncryptionParameters = field(default_factory=EncryptionParameters)
    segments_in_flight: int = 4
    """Segments of one upload that may be on their way to the nodes at the same time."""
    upload_patience: Patience = field(default_factory=Patience)
    download_patience: float = PATIENCE
    download_silence: float = SILENCE
    """Seconds after which a node that gives nothing of its piece has failed."""
    list_page: int = 1000
    segment_page: int = 64
    """Segments whose places are fetched at once while downloading."""
    copy_page: int | None = None
    """Keys in one message of a copy; None: as many as the satellite takes."""

    def __post_init__(self) -> None:
        if self.segment_size < 1:
            raise InvalidInput(f"a segment needs at least one byte, not {self.segment_size}")
        if self.segments_in_flight < 1:
            raise InvalidInput(
                f"at least one segment must be in flight, not {self.segments_in_flight}"
            )
        if self.inline_size < 0:
            raise InvalidInput(f"the inline size cannot be negative: {self.inline_size}")


@dataclass(frozen=True, slots=True)
class Limits:
    """What the satellite says of the project."""

    project_id: bytes
    segment_size: int
    inline_size: int
    keys_per_request: int


class Session:
    """One access to one project. Safe to share between threads."""

    def __init__(
        self,
        metainfo: Metainfo,
        api_key: bytes,
        access: EncryptionAccess,
        *,
        nodes: NodeDirectory | None = None,
        settings: UplinkSettings | None = None,
    ) -> None:
        self.metainfo = metainfo
        self.header = pb.RequestHeader(api_key=api_key)
        self.access = access
        self.nodes = nodes or NodeDirectory()
        self.settings = settings or UplinkSettings()
        self.levels = LevelCache()
        self.uploads = KeptUploads()
        self._folders = FolderKeys(access)

    @cached_property
    def limits(self) -> Limits:
        """Asked once: the smaller of what the settings want and what the satellite allows."""
        project = self.metainfo.get_project(pb.ProjectGetRequest(header=self.header))
        keys = project.max_keys_per_request
        return Limits(
            project_id=project.project_id,
            segment_size=min(self.settings.segment_size, project.max_segment_size),
            inline_size=min(self.settings.inline_size, project.max_inline_size),
            keys_per_request=min(self.settings.copy_page or keys, keys),
        )

    def locate(self, bucket: str, key: str) -> Located:
        """An object's encrypted name and keys."""
        if not bucket:
            raise InvalidInput("a bucket must be named")
        return self._folders.locate(bucket, key)

    def node(self, node: pb.Node) -> PieceHolder:
        """The node of a message, opened once."""
        return self.nodes.get(node.id, node.address, node.placement)

    def close(self) -> None:
        """Let go of the satellite and of the nodes."""
        self.metainfo.close()
        self.nodes.close()


def redundancy_of(message: pb.RedundancyScheme) -> Redundancy:
    """The redundancy that the satellite chose."""
    return Redundancy(
        required=message.required,
        repair=message.repair,
        success=message.success,
        total=message.total,
        share_size=message.share_size,
    )
