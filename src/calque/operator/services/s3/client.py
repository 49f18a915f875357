"""One signed request through the layers, its refusals mapped."""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from calque._version import __version__
from calque.errors import (
    Aborted,
    CalqueError,
    InvalidInput,
    TimedOut,
    Unavailable,
    Unexpected,
)
from calque.operator.http.connection import Connection, Reply, WireError
from calque.operator.http.exchange import encode_head, retry_after
from calque.operator.http.html_replies import refuse_page
from calque.operator.http.pool import Pool
from calque.operator.http.route import Route
from calque.operator.layers.chain import Call, Chain
from calque.operator.services.s3.address import Endpoint, encode_query
from calque.operator.services.s3.config import S3Config
from calque.operator.services.s3.credentials import Account
from calque.operator.services.s3.errors import Refusal, error_of, refusal_of
from calque.operator.services.s3.signing import EMPTY_SHA256, UNSIGNED, Signer

_SLOW_SECONDS = 900.0
"""A commit of many parts may be silent for minutes."""
_AGENT = f"calque/{__version__}"
_ERROR_DOCUMENT = b"<Error"
_REFUSAL_PIECES = 16
"""A refusal is read no further: a broken server may never end it."""
PAYING = {"x-amz-request-payer": "requester"}
"""Without it a bucket whose requests are paid by who asks refuses them."""
_CHECKS = ("content-md5", "x-amz-checksum-crc32")


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply, read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of S3; ``key`` None asks the bucket. Names of headers are in lower case."""

    method: str
    key: str | None
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] | None = None
    body: bytes | memoryview = b""
    accepts: tuple[int, ...] = (200,)
    answers_by: bytes = b""
    """The element of an answer that tells errors of single keys among what went well."""


class Link:
    """The endpoint, its connections and its signer: made once, shared whatever the layers."""

    def __init__(self, config: S3Config) -> None:
        self.config = config
        self.account = Account(config)
        self._lock = threading.Lock()
        self._made: tuple[Endpoint, Pool, Signer] | None = None
        self.bucket_seen = False
        """The bucket has answered: a missing object is then just that."""
        self.tags_seen = False
        """Tags may be read here: a reply that counts none is of an object that has none."""
        self.marks_by_size = config.upload_mark == "size"
        """Said, or learnt from a commit that was refused."""
        self.marked: set[str] = set()
        """Uploads of this process that hold the part which marks them."""

    def parts(self) -> tuple[Endpoint, Pool, Signer]:
        made = self._made
        if made is None:
            # Looked at again under the lock: another thread may have been faster.
            with self._lock:
                made = self._made = self._made or self._make()
        return made

    def _make(self) -> tuple[Endpoint, Pool, Signer]:
        config, account = self.config, self.account
        endpoint = account.endpoint()
        route = Route(
            endpoint.scheme,
            endpoint.host,
            config.connect_timeout,
            account.tls() if endpoint.scheme == "https" else None,
            account.proxy(endpoint),
        )
        pool = Pool(route, config.max_connections, patience=config.read_timeout)
        # Operators are seldom closed by hand; their idle connections end with them.
        weakref.finalize(self, pool.close)
        return endpoint, pool, Signer(endpoint.region, endpoint.service)

    def close(self) -> None:
        with self._lock:
            made, self._made = self._made, None
        if made is not None:
            made[1].close()


class Stream:
    """A reply whose body is still to be read; close it, or read it to its end."""

    def __init__(self, pool: Pool, connection: Connection, reply: Reply, location: str) -> None:
        self.headers = reply.headers
        self.status = reply.status
        self._pool = pool
        self._connection: Connection | None = connection
        self._reply = reply
        self._location = location

    def pieces(self, size: int) -> Iterator[bytes]:
        """The body in pieces; Unavailable where it is cut off."""
        try:
            yield from self._reply.pieces(size)
        except WireError as error:
            raise exchange_error(error, self._location) from error
        finally:
            self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.release(connection)


class Client:
    """Sends requests for one bucket."""

    def __init__(self, link: Link, chain: Chain) -> None:
        self.link = link
        self.chain = chain

    @property
    def endpoint(self) -> Endpoint:
        return self.link.parts()[0]

    def location(self, key: str | None) -> str:
        bucket = self.link.config.bucket
        return f"s3://{bucket}/{key}" if key is not None else f"s3://{bucket}"

    def send(
        self,
        verb: str,
        path: str,
        request: Request,
        *,
        idempotent: bool = True,
        slow: bool = False,
    ) -> Answer:
        """The reply to one request, read whole; what S3 refuses becomes the error it stands for.

        A status of success with an error document inside is a refusal too.
        """

        def once(call: Call) -> Answer:
            stream = self._ask(call, request)
            location = self.location(request.key)
            try:
                body = stream._reply.read()
            except WireError as error:
                raise exchange_error(error, location) from error
            finally:
                stream.close()
            if stream.status in request.accepts:
                refuse_page(body, location)
            # S3 may answer a long copy or commit with 200 first and the error in the body later.
            told = bool(request.answers_by) and request.answers_by in body
            if stream.status in request.accepts and (told or not _is_error(body)):
                self.link.bucket_seen = True
                return Answer(stream.status, stream.headers, body)
            raise self._refusal_error(Answer(stream.status, stream.headers, body), location)

        call = Call(verb, path, idempotent=idempotent, slow=slow)
        return self.chain.run(call, once)

    def open(self, verb: str, path: str, request: Request) -> Stream:
        """The reply to one request, its body still on the wire."""

        def once(call: Call) -> Stream:
            stream = self._ask(call, request)
            if stream.status in request.accepts:
                self.link.bucket_seen = True
                return stream
            location = self.location(request.key)
            body = b"".join(islice(stream.pieces(65536), _REFUSAL_PIECES))
            stream.close()
            raise self._refusal_error(Answer(stream.status, stream.headers, body), location)

        return self.chain.run(Call(verb, path), once)

    def _refusal_error(self, answer: Answer, location: str) -> CalqueError:
        refusal = refusal_of(answer.status, answer.headers, answer.body)
        error = error_of(
            refusal,
            location,
            retry_after=retry_after(answer.headers),
            by_session=self.link.account.has_session,
        )
        error.__cause__ = refusal
        return error

    def _ask(self, call: Call, request: Request) -> Stream:
        endpoint, pool, _ = self.link.parts()
        head = self._head(request)
        timeout = call.timeout or self.link.config.read_timeout
        if call.slow and call.timeout is None:
            timeout = max(timeout, _SLOW_SECONDS)
        try:
            connection, reply = pool.exchange(
                head,
                request.body,
                bodiless=request.method == "HEAD",
                timeout=timeout,
                repeatable=call.idempotent,
                within=call.within,
                stopped=call.stopped,
            )
        except WireError as error:
            raise exchange_error(error, self.location(request.key), endpoint.origin) from error
        return Stream(pool, connection, reply, self.location(request.key))

    def _head(self, request: Request) -> bytes:
        endpoint, pool, signer = self.link.parts()
        path = endpoint.path(request.key)
        query = encode_query(request.query)
        headers = {"host": endpoint.host, **(request.headers or {})}
        if self.link.config.requester_pays:
            headers |= PAYING
        keys = self.link.account.keys()
        # Asked for anew with each request: credentials of a role are renewed while we run.
        if keys is not None:
            payload = self._payload(endpoint, request, headers)
            headers = signer.sign(keys, request.method, path, query, headers, payload)
        search = "?" + "&".join([f"{name}={value}" for name, value in query]) if query else ""
        lines = [f"{request.method} {pool.route.target_prefix}{path}{search} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"{name}: {value}" for name, value in pool.route.proxy_headers.items()]
        lines.append(f"user-agent: {_AGENT}")
        if request.body or request.method in ("PUT", "POST"):
            lines.append(f"content-length: {len(request.body)}")
        text = "\r\n".join(lines)
        if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1:
            raise InvalidInput("a header cannot hold a line break: look at metadata and options")
        return encode_head(text)

    def _payload(self, endpoint: Endpoint, request: Request, headers: Mapping[str, str]) -> str:
        """The body's hash. As in botocore, TLS and a checksum together make it needless."""
        if not request.body:
            return EMPTY_SHA256
        if endpoint.scheme == "https" and any(name in headers for name in _CHECKS):
            return UNSIGNED
        return hashlib.sha256(request.body).hexdigest()


def _is_error(body: bytes) -> bool:
    """Whether a document is an error: its root element, behind a declaration or white space."""
    return b"<Code>" in body and _ERROR_DOCUMENT in body.lstrip()[:256]


def exchange_error(error: WireError, location: str, origin: str = "") -> CalqueError:
    """The error that a failed exchange becomes."""
    if error.stopped:
        return Aborted(f"{location}: the request was stopped")
    if error.nonsense:
        return Unexpected(f"{location}: the server answered what is no HTTP: {error}")
    if error.timed_out:
        return TimedOut(f"{location}: no reply in time ({error})")
    if not error.sent:
        hint = "Check the endpoint, the region, the network and the proxy settings."
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            hint = "Its certificate is not trusted: name one with ca_bundle or AWS_CA_BUNDLE."
        unreached = Unavailable(f"{location}: {origin} cannot be reached ({error})", hint=hint)
        unreached.surely_not_acted = True
        return unreached
    return Unavailable(f"{location}: the connection was lost ({error})")


def refusal_behind(error: CalqueError) -> Refusal | None:
    """What S3 said, where an error of ours came from it."""
    cause = error.__cause__
    return cause if isinstance(cause, Refusal) else None
