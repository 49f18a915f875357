"""The plain bytes of one segment, or a range of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from calque.errors import IntegrityError
from calque.store.chunks import ChunkReader
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.nodes.download import Source, download_stripes
from calque.store.nodes.erasure import Coder
from calque.store.nodes.units import Stripes
from calque.store.uplink.encryption.access import Located
from calque.store.uplink.encryption.blocks import BlockCipher, EncryptionParameters, span_of
from calque.store.uplink.encryption.cipher import Sealed
from calque.store.uplink.encryption.segment_keys import Position, unwrap_segment_key
from calque.store.uplink.session import Session, redundancy_of


def read_segment(
    session: Session,
    located: Located,
    parameters: EncryptionParameters,
    segment: pb.Segment,
    nodes: Mapping[bytes, pb.Node],
    offset: int,
    length: int,
) -> Iterator[bytes]:
    """``length`` (at least 1) plain bytes from ``offset`` within the segment, block by block."""
    position = Position(segment.position.part_number, segment.position.index)
    wrapped = Sealed(segment.encrypted_key_nonce, segment.encrypted_key)
    key = unwrap_segment_key(parameters.suite, located, wrapped, position)
    cipher = BlockCipher(key, parameters)
    if segment.inline:
        plain = cipher.decrypt(0, segment.inline_data, last=True)
        yield plain[offset : offset + length]
        return
    if segment.HasField("origin"):
        # Its blocks are those of the segment that it is cut from, by number and by end.
        offset += segment.origin.skip
        whole = pb.Segment()
        whole.CopyFrom(segment)
        whole.plain_size = segment.origin.plain_size
        whole.encrypted_size = segment.origin.encrypted_size
        segment = whole
    yield from _read_remote(session, cipher, parameters, segment, nodes, offset, length)


def _read_remote(
    session: Session,
    cipher: BlockCipher,
    parameters: EncryptionParameters,
    segment: pb.Segment,
    nodes: Mapping[bytes, pb.Node],
    offset: int,
    length: int,
) -> Iterator[bytes]:
    if segment.encrypted_size != parameters.encrypted_size(segment.plain_size):
        raise IntegrityError(
            f"a segment of {segment.plain_size} plain bytes cannot have "
            f"{segment.encrypted_size} encrypted ones: its record is damaged"
        )
    coder = Coder(redundancy_of(segment.redundancy))
    tokens = segment.piece_tokens or [b""] * len(segment.pieces)
    sources = [
        Source(piece.number, session.node(nodes[piece.node_id]), token)
        for piece, token in zip(segment.pieces, tokens, strict=True)
        if piece.node_id in nodes
    ]
    end, failure = offset + length, None
    for chosen in _choices(sources, coder):
        try:
            for plain in _try_sources(
                session, cipher, parameters, segment, coder, chosen, offset, end
            ):
                offset += len(plain)
                yield plain
        except IntegrityError as error:
            failure = failure or error
        else:
            return
    raise failure or IntegrityError("the satellite names no piece of this segment")


def _choices(sources: Sequence[Source], coder: Coder) -> Iterator[Sequence[Source]]:
    """All pieces; then, where one of them lies with a right hash, all but one in turn."""
    yield sources
    if len(sources) > coder.redundancy.required:
        for left_out in sources:
            yield [source for source in sources if source is not left_out]


def _try_sources(
    session: Session,
    cipher: BlockCipher,
    parameters: EncryptionParameters,
    segment: pb.Segment,
    coder: Coder,
    sources: Sequence[Source],
    offset: int,
    end: int,
) -> Iterator[bytes]:
    span = span_of(parameters, offset, end - offset)
    first = span.first * parameters.block_size
    last = min((span.first + span.count) * parameters.block_size, segment.encrypted_size)
    stripes = Stripes.of_range(coder, segment.encrypted_size, first, last - first)
    shares = download_stripes(
        sources,
        stripes,
        segment.root_piece_id,
        patience=session.settings.download_patience,
        silence=session.settings.download_silence,
    )
    source = ChunkReader(shares)
    try:
        source.skip(first - stripes.offset)
        yield from _decrypt(cipher, parameters, segment.plain_size, source, offset, end - offset)
    finally:
        source.close()


def _decrypt(
    cipher: BlockCipher,
    parameters: EncryptionParameters,
    plain_size: int,
    source: ChunkReader,
    offset: int,
    length: int,
) -> Iterator[bytes]:
    span = span_of(parameters, offset, length)
    last = parameters.block_count(plain_size) - 1
    skip, left = span.skip, span.length
    for number in range(span.first, span.first + span.count):
        plain = cipher.decrypt(number, source.read(parameters.block_size), last=number == last)
        if skip or len(plain) > left:
            plain = plain[skip : skip + left]
            skip = 0
        left -= len(plain)
        yield plain
