"""The gateway: one request in, one response out, whatever carries them."""

from __future__ import annotations

import logging
import secrets
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import cached_property

from calque.errors import CalqueError, NotFound, Unexpected
from calque.gateway.body.form import Form, is_form
from calque.gateway.cors import KIND as CORS
from calque.gateway.cors import answer_preflight, find_rule, parse_rules
from calque.gateway.documents import BucketDocuments
from calque.gateway.errors import ClientGone, S3Error, to_s3_error
from calque.gateway.keys import AccessKeys, S3Key, fingerprint
from calque.gateway.metrics import NO_VERB, metrics_of
from calque.gateway.request import Request, Response
from calque.gateway.route import BUCKET, OBJECT, SERVICE, find_verb
from calque.gateway.signature.authenticate import Identity, KeyFinder, authenticate
from calque.gateway.signature.post_policy import verify_policy
from calque.gateway.signature.presigned_v2 import move_headers
from calque.gateway.target import Target, find_target
from calque.gateway.verbs.call import Call, missing_of
from calque.gateway.verbs.objects.post_object import form_key, post_object
from calque.gateway.verbs.owner import owner_of
from calque.gateway.xml import write_document
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.accounts.api_keys import api_key_secret
from calque.store.metainfo import ApiKey
from calque.store.project import Project
from calque.store.uplink.session import Session, UplinkSettings

_log = logging.getLogger(__name__)
_PROJECTS = 1024
_STRANGERS = 64
"""Forms whose sender is not known yet, at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """``domains``: hosts below which the first label is a bucket. ``region``: what is answered;
    requests may be signed for any."""

    region: str = "us-east-1"
    domains: Sequence[str] = ("localhost",)


@dataclass(slots=True)
class _Asked:
    """What a request turned out to ask for, also where it was refused then."""

    verb: str = NO_VERB


class Gateway:
    """S3 over a store. :meth:`handle` may be called from many threads."""

    def __init__(
        self,
        store: EmbeddedStore,
        options: GatewayOptions | None = None,
        *,
        settings: UplinkSettings | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self.options = options or GatewayOptions()
        self.keys = AccessKeys(store.endpoint.database)
        self._documents = BucketDocuments(store.endpoint.database)
        self._lock = threading.Lock()
        self._strangers = threading.BoundedSemaphore(_STRANGERS)
        self._projects: dict[bytes, Project] = {}
        self._metrics = metrics_of(store.endpoint.metrics.registry)

    def handle(self, request: Request) -> Response:
        """Answer a request; every error becomes S3's own document."""
        request_id = secrets.token_hex(8).upper()
        started, asked = time.perf_counter(), _Asked()
        try:
            response = self._answer(request, asked)
        except ClientGone:
            raise
        except CalqueError as error:
            response = _refuse(request, to_s3_error(error), request_id, error)
        except Exception as error:
            # Where, and its type, but not what it says: that may quote a request, and its secrets.
            where = "".join(traceback.format_tb(error.__traceback__))
            _log.error("a request failed by %s:\n%s", type(error).__name__, where)
            response = _refuse(request, S3Error("InternalError"), request_id, error)
        response.headers |= self._cors_headers(request)
        response.headers.setdefault("x-amz-request-id", request_id)
        response.headers.setdefault("Date", format_datetime(self._clock(), usegmt=True))
        response.headers.setdefault("Server", "calque")
        self._metrics.count(asked.verb, response.status, time.perf_counter() - started)
        return response

    def _answer(self, request: Request, asked: _Asked) -> Response:
        target = find_target(request, self.options.domains)
        if request.method == "OPTIONS":
            asked.verb = "Preflight"
            return Response(200, answer_preflight(self._cors(target.bucket), request.headers))
        if is_form(request) and target.bucket and not target.key:
            asked.verb = "PostObject"
            return self._answer_form(request, target)
        request = move_headers(request)
        identity = authenticate(request, self.keys, self._clock(), target.host_bucket)
        call = self._call(request, identity, target.bucket, target.key)
        verb = find_verb(_level(target), request.method, call.query, request.headers)
        asked.verb = verb.name
        return _run(call, verb.run)

    def _answer_form(self, request: Request, target: Target) -> Response:
        """The form itself is signed, not the request that brings it: fields of strangers are read,
        and so by a few at a time, who leave threads for everybody else."""
        if not self._strangers.acquire(blocking=False):
            raise S3Error("SlowDown", "Please reduce your request rate.")
        try:
            form = Form(request.body, request.headers["content-type"])
            finder = KeyFinder(self.keys)
            policy = verify_policy(form.fields, finder.find_secret, self._clock())
        finally:
            self._strangers.release()
        call = self._call(request, Identity(finder.found()), target.bucket, form_key(form))
        return _run(call, lambda call: post_object(call, form, policy))

    def _call(self, request: Request, identity: Identity, bucket: str, key: str) -> Call:
        project = self._project(identity.key)
        region = self.options.region
        return Call(request, identity, project, bucket, key, region, self._documents)

    def _cors(self, bucket: str) -> bytes | None:
        """The rules of a bucket for browsers; a preflight, which nobody signs, may ask too."""
        return self._documents.find(self._project_id, bucket, CORS) if bucket else None

    @cached_property
    def _project_id(self) -> bytes:
        """The project that every key of this store belongs to."""
        head = ApiKey.parse(self._store.access.api_key).head
        found = api_key_secret(self._store.endpoint.database, head)
        return found.project_id if found else b""

    def _cors_headers(self, request: Request) -> dict[str, str]:
        """What a browser must see to show the answer to its page."""
        origin = request.headers.get("origin")
        if origin is None or request.method == "OPTIONS":
            return {}
        try:
            document = self._cors(find_target(request, self.options.domains).bucket)
            rule = find_rule(parse_rules(document), origin, request.method) if document else None
        except CalqueError:
            return {}
        return rule.answer(origin) if rule else {}

    def _project(self, key: S3Key) -> Project:
        """The project behind a key; sessions are kept, for they know limits and ciphers."""
        project = self._projects.get(key.hash)
        if project is None or project.access is not key.grant:
            session = Session(
                self._store.endpoint,
                bytes(key.grant.api_key),
                key.grant.encryption,
                nodes=self._store.nodes,
                settings=self._settings,
            )
            project = Project(session, key.grant)
            with self._lock:
                if len(self._projects) >= _PROJECTS:
                    self._projects.clear()
                self._projects[key.hash] = project
            _log.debug("the key %s is in use", fingerprint(key.hash))
        return project


def _run(call: Call, verb: Callable[[Call], Response]) -> Response:
    expected = call.headers.get("x-amz-expected-bucket-owner")
    if expected is not None and expected != owner_of(call)["ID"]:
        raise S3Error("AccessDenied", "The bucket is not owned by whom the request expects.")
    try:
        return verb(call)
    except NotFound as error:
        raise missing_of(call, error) from error


def _level(target: Target) -> str:
    if not target.bucket:
        return SERVICE
    return OBJECT if target.key else BUCKET


def _refuse(request: Request, error: S3Error, request_id: str, cause: Exception) -> Response:
    if error.status >= 500 and error.code != "NotImplemented":
        # The client is told a code alone. Words that are not ours might quote its request.
        words = ""
        if isinstance(cause, CalqueError) and not isinstance(cause, Unexpected):
            words = repr(cause.message)
        _log.warning("%s: %s (%s) %s", request_id, error.code, type(cause).__name__, words)
    content = {
        "Code": error.code,
        "Message": error.message,
        **error.fields,
        "Resource": request.path,
        "RequestId": request_id,
    }
    headers = dict(error.headers)
    if error.status == 304:
        return Response(304, headers)
    headers["Content-Type"] = "application/xml"
    body = write_document("Error", content, namespace=False)
    if request.method == "HEAD":
        headers["Content-Length"], body = str(len(body)), b""
    return Response(error.status, headers, body)
