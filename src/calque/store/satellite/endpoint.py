"""The endpoint: every call of the service, carried out in this process."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from google.protobuf.message import Message

from calque.errors import CalqueError, InvalidInput, ResourceExhausted, Unexpected
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import migrate
from calque.store.metabase.model.records import DeletedPieces, now_us
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.pb import tokens_pb2 as tokens
from calque.store.metainfo.service import CALLS, Metainfo
from calque.store.satellite.admin import Admin
from calque.store.satellite.calls import (
    accounts,
    buckets,
    copies,
    inline_objects,
    objects,
    part_copies,
    prefixes,
    segments,
    whole_segments,
)
from calque.store.satellite.freed_pieces import DeletePieces, keep_pieces, never_over
from calque.store.satellite.metrics import Metrics
from calque.store.satellite.open_pieces import OpenPieces
from calque.store.satellite.piece_deleter import PieceDeleter
from calque.store.satellite.piece_tokens import open_token
from calque.store.satellite.rate_limit import RateLimit
from calque.store.satellite.satellite import Satellite
from calque.store.satellite.settings import SatelliteSettings

_log = logging.getLogger(__name__)

HANDLERS: Mapping[str, Callable[..., Message]] = {
    "GetProject": accounts.get_project,
    "CreateBucket": buckets.create,
    "GetBucket": buckets.get,
    "DeleteBucket": buckets.delete,
    "ListBuckets": buckets.list_,
    "BeginObject": objects.begin,
    "CommitObject": objects.commit,
    "AbortObject": objects.abort,
    "GetObject": objects.get,
    "ListObjects": objects.list_,
    "DeleteObject": objects.delete,
    "DeleteObjects": objects.delete_many,
    "PutInlineObject": inline_objects.put,
    "PutObject": whole_segments.put,
    "UpdateObjectMetadata": objects.update,
    "BeginSegment": segments.begin,
    "CommitSegment": segments.commit,
    "MakeInlineSegment": segments.make_inline,
    "CopyPart": part_copies.copy_part_of_object,
    "ListSegments": segments.list_,
    "BeginCopyObject": copies.begin_copy_object,
    "FinishCopyObject": copies.finish_copy_object,
    "BeginMoveObject": copies.begin_move_object,
    "FinishMoveObject": copies.finish_move_object,
    "GetOperation": copies.get_operation,
    "BeginPrefix": prefixes.begin,
    "StagePrefix": prefixes.stage,
    "FinishPrefix": prefixes.finish,
    "RevokeApiKey": accounts.revoke_api_key,
}


class Endpoint(Metainfo):
    """A satellite in this process.

    Every call is authorised, counted against the project's rate and timed. Errors are
    those of :mod:`calque.errors`; a mistake of ours is ``Unexpected``, never a traceback.
    """

    may_lose_answers = False

    def __init__(
        self,
        database: Database,
        settings: SatelliteSettings | None = None,
        *,
        delete_pieces: DeletePieces = keep_pieces,
    ) -> None:
        self.settings = settings or SatelliteSettings()
        self._satellite = Satellite(database, self.settings, delete_pieces)
        self._rate = RateLimit(self.settings.calls_per_second)
        self.admin = Admin(database, self._satellite.nodes)

    @classmethod
    def open(
        cls,
        url: str,
        settings: SatelliteSettings | None = None,
        *,
        delete_pieces: DeletePieces = keep_pieces,
        clock: Callable[[], int] = now_us,
        create: bool = True,
    ) -> Endpoint:
        """Open the metabase at ``url``, bring its schema up to date, and serve it.

        Without ``create`` it must be there already.
        """
        database = Database.open(url, clock=clock, create=create)
        try:
            migrate(database)
            return cls(database, settings, delete_pieces=delete_pieces)
        except BaseException:
            database.close()
            raise

    @property
    def database(self) -> Database:
        """The metabase behind this endpoint, for the services beside it."""
        return self._satellite.database

    @property
    def metrics(self) -> Metrics:
        """What this endpoint has counted."""
        return self._satellite.metrics

    def call(self, name: str, request: Message) -> Message:
        """Carry out the call ``name``."""
        started = time.perf_counter()
        try:
            return self._carry_out(name, request)
        except CalqueError as error:
            self.metrics.count_failure(name, error)
            raise
        except Exception as error:
            _log.exception("the call %s failed", name)
            self.metrics.count_failure(name, error)
            raise Unexpected(f"the satellite failed in {name} ({type(error).__name__})") from error
        finally:
            self.metrics.count_call(name, time.perf_counter() - started)

    def admit_piece(
        self, api_key: bytes, token: bytes, action: tokens.PieceToken.Action
    ) -> tokens.PieceToken:
        """What a token of :mod:`piece_tokens` allows; PermissionDenied unless it is the key's."""
        caller = self._satellite.gatekeeper.admit(api_key)
        return open_token(self._satellite, caller, token, action)

    @property
    def open_pieces(self) -> OpenPieces:
        """What the relay puts is counted here until it is committed."""
        return self._satellite.open_pieces

    def free_waiting(self, most: int | None = None, over: Callable[[], bool] = never_over) -> int:
        """Delete pieces that are queued, of at most ``most`` segments; how many are gone.

        A crash or a silent node puts deletions off: they are in the queue. When ``over`` says so
        the rest is left for another time.
        """
        return self._satellite.freed_pieces.free_waiting(most, over)

    @contextmanager
    def delete_behind_answers(self) -> Iterator[None]:
        """For the length of a ``with`` block calls do not wait until freed pieces are deleted.

        At its end all are that can be.
        """
        satellite = self._satellite
        deleter = satellite.deleter = PieceDeleter(satellite.freed_pieces.free)
        deleter.start()
        try:
            yield
        finally:
            satellite.deleter = None
            deleter.stop()

    @property
    def are_pieces_on_hold(self) -> bool:
        """Whether a backup wants every piece to stay where it is."""
        return self._satellite.freed_pieces.is_on_hold

    def list_waiting_pieces(self) -> list[DeletedPieces]:
        """The pieces that are still to be deleted."""
        return self._satellite.freed_pieces.list_waiting()

    def close(self) -> None:
        """Close the metabase."""
        self._satellite.freed_pieces.settle()
        self._satellite.database.close()

    def _carry_out(self, name: str, request: Message) -> Message:
        call = CALLS.get(name)
        if call is None:
            raise InvalidInput(f"there is no call {name!r}")
        if type(request) is not call.request:
            raise InvalidInput(f"{name} takes a {call.request.DESCRIPTOR.name}")
        if request.ByteSize() > self.settings.max_message_size:
            raise ResourceExhausted(
                f"the message has {request.ByteSize()} bytes, "
                f"the limit is {self.settings.max_message_size}"
            )
        header: pb.RequestHeader = getattr(request, "header")  # noqa: B009 - every request has one
        # Size, key, rate, in this order: the cheapest refusal first, and a stranger without a key
        # cannot use up a project's rate.
        caller = self._satellite.gatekeeper.admit(header.api_key)
        self._rate.take(caller.project_id)
        return HANDLERS[name](self._satellite, caller, request)
