"""The verbs over a bucket."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from calque.errors import CalqueError, NotFound, PermissionDenied, Unsupported
from calque.operator import paths
from calque.operator.capability import Capability
from calque.operator.layers.chain import Chain
from calque.operator.options import CopyOptions, DeleteOptions, ReadOptions, WriteOptions
from calque.operator.service import CopyDriver, Leftover, Probe, Service
from calque.operator.services.s3.address import valid_key
from calque.operator.services.s3.client import Client, Link
from calque.operator.services.s3.config import S3Config
from calque.operator.services.s3.copy import S3Copy, resume_driver, start_driver
from calque.operator.services.s3.delete import MOST as MOST_DELETES
from calque.operator.services.s3.delete import delete, delete_many
from calque.operator.services.s3.leftovers import leftovers, remove_leftover
from calque.operator.services.s3.list import list_keys
from calque.operator.services.s3.options_for_others import Handover, handover
from calque.operator.services.s3.parted_write import S3PartedWrite
from calque.operator.services.s3.presign import presign
from calque.operator.services.s3.probe import Prober
from calque.operator.services.s3.read import fetch, read
from calque.operator.services.s3.replies import CHECKSUMS
from calque.operator.services.s3.stat import head, stat, tags_to_carry
from calque.operator.services.s3.versions import list_versions
from calque.operator.services.s3.write import Write
from calque.values import Metadata, ObjectIdentity


class S3Service:
    """A root in a bucket. Safe to share between threads; connections are shared too."""

    def __init__(self, config: S3Config, link: Link, chain: Chain) -> None:
        self._config = config
        self._link = link
        self._chain = chain
        self._client = Client(link, chain)
        self._capability = _capability_of(config)

    @property
    def scheme(self) -> str:
        return "s3"

    @property
    def capability(self) -> Capability:
        return self._capability

    @property
    def chain(self) -> Chain:
        return self._chain

    def with_chain(self, chain: Chain) -> S3Service:
        return S3Service(self._config, self._link, chain)

    def handover(self) -> Handover:
        """What another client needs to reach the bucket as we do."""
        return handover(self._link)

    def location(self, path: str) -> str:
        return self._client.location(paths.join(self._config.root, path))

    def _key(self, path: str) -> str:
        key = paths.join(self._config.root, paths.unicode_path(path))
        return valid_key(key, self._config.unfit_in_keys)

    def _path_of(self, key: str) -> str:
        return paths.relative(self._config.root, key)

    def identity(self, path: str) -> ObjectIdentity:
        return ObjectIdentity(self.location(path), self._server, self._account)

    @property
    def _server(self) -> str:
        return self._client.endpoint.server(self._config.bucket)

    @property
    def _account(self) -> str | None:
        """Whose buckets these are, as far as keys tell; Amazon's have one space of names."""
        if self._client.endpoint.partition is not None:
            return None
        keys = self._link.account.keys()
        if keys is None:
            return "anonymous"
        return hashlib.sha256(keys.access_key.encode()).hexdigest()[:16]

    def stat(self, path: str, *, version: str | None = None) -> Metadata:
        return stat(self._client, path, self._key(path), version=version)

    def tags_to_carry(self, source: Metadata) -> Mapping[str, str]:
        """The tags of an object that is copied; raises where there may be some we cannot read."""
        key = self._key(source.path)
        return source.tags or tags_to_carry(self._client, source.path, key, source.version)

    def list(
        self, prefix: str, *, start_after: str = "", recursive: bool = True
    ) -> Iterator[Metadata]:
        return list_keys(
            self._client,
            prefix,
            self._key(prefix),
            after=self._key(start_after) if start_after else "",
            delimiter="" if recursive else "/",
            page_size=self._config.page_size,
            path_of=self._path_of,
            ordered=self._config.key_order,
        )

    def read(self, path: str, options: ReadOptions) -> Iterator[bytes]:
        return read(self._client, path, self._key(path), options)

    def fetch(
        self, path: str, options: ReadOptions, *, tags: bool = True
    ) -> tuple[Metadata, bytes]:
        return fetch(self._client, path, self._key(path), options, tags=tags)

    def write(self, path: str, chunks: Iterable[bytes], options: WriteOptions) -> Metadata:
        return Write(self._client, self._config, path, self._key(path), options).run(chunks)

    def write_in_parts(self, path: str, options: WriteOptions) -> S3PartedWrite:
        return S3PartedWrite.of(Write(self._client, self._config, path, self._key(path), options))

    def delete(self, path: str, options: DeleteOptions) -> None:
        delete(self._client, path, self._key(path), options)

    @property
    def deletes_at_once(self) -> int:
        """Objects that :meth:`delete_many` takes; 0 where it would not keep their conditions."""
        amazon = self._client.endpoint.partition is not None
        wanted = self._config.delete_many
        return MOST_DELETES if (amazon if wanted is None else wanted) else 0

    def delete_many(self, entries: Sequence[Metadata]) -> dict[str, CalqueError]:
        return delete_many(self._client, entries, self._key)

    def copy(
        self, source: Metadata, target: str, options: CopyOptions, *, into: Service
    ) -> CopyDriver:
        return start_driver(self._verbs(source, target, options, into))

    def resume(
        self,
        source: Metadata,
        target: str,
        options: CopyOptions,
        state: Mapping[str, Any],
        *,
        into: Service,
    ) -> CopyDriver:
        return resume_driver(self._verbs(source, target, options, into), state)

    def _verbs(self, source: Metadata, target: str, options: CopyOptions, into: Service) -> S3Copy:
        if not isinstance(into, S3Service) or into._server != self._server:
            raise Unsupported(
                f"S3 cannot copy {self.location(source.path)} to {into.location(target)} by itself"
            )
        # The target's credentials send the copy. If they see another object under that name, it
        # would be copied without a word.
        if into is not self and into._account != self._account and not into._sees(self, source):
            raise Unsupported(
                f"the target's credentials do not see {self.location(source.path)} as the "
                "source's do, and a copy inside the server is made with them",
                hint="Let them read the source's bucket, or let the bytes pass through this "
                "client: stream=True (--stream).",
            )
        return S3Copy(
            origin=self._client,
            into=into._client,
            config=into._config,
            source=source,
            source_key=self._key(source.path),
            target=target,
            target_key=into._key(target),
            options=options,
        )

    def _sees(self, origin: S3Service, source: Metadata) -> bool:
        """Whether these credentials see the source that others have found.

        Two accounts of one server may each have a bucket of this name, with another object in it.
        """
        # A link of its own: this one has signed and resolved for another bucket.
        link = Link(replace(self._config, bucket=origin._config.bucket))
        try:
            key, version = origin._key(source.path), source.version
            found = head(Client(link, self._chain), source.path, key, version=version)
        except (NotFound, PermissionDenied):
            return False
        finally:
            link.close()
        listed = source.content_type is None
        return _traits_of(found, listed=listed) == _traits_of(source, listed=listed)

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        return leftovers(self._client, prefix, self._key(prefix))

    def remove_leftover(self, leftover: Leftover) -> None:
        remove_leftover(self._client, leftover)

    def presign(self, method: str, path: str, seconds: int) -> tuple[str, Mapping[str, str]]:
        return presign(self._client, method, self._key(path), seconds)

    def list_versions(self, prefix: str) -> Iterator[Metadata]:
        return list_versions(
            self._client,
            prefix,
            self._key(prefix),
            page_size=self._config.page_size,
            path_of=self._path_of,
        )

    def probe(self, prefix: str) -> Iterator[Probe]:
        base = self._key(prefix)
        slash = "/" if base and not base.endswith("/") else ""
        return Prober(self._client, f"{base}{slash}").run()

    def close(self) -> None:
        self._link.close()


def _traits_of(found: Metadata, *, listed: bool) -> tuple[object, ...]:
    """What tells two objects of one name apart; a listing tells less, and finer times."""
    when = found.last_modified and found.last_modified.replace(microsecond=0)
    known = (found.size, found.etag, when)
    return known if listed else (*known, found.version, found.content_type, dict(found.user))


def _capability_of(config: S3Config) -> Capability:
    """What the server is said to be able to."""
    conditions = config.copy_if_not_exists
    return Capability(
        unfit_in_keys=config.unfit_in_keys,
        list_in_key_order=config.key_order,
        etags_are_md5=config.md5_etags,
        checksums=frozenset(CHECKSUMS) | ({"md5"} if config.md5_etags else set()),
        step_of_times=1.0,
        write_at_once_up_to=config.write_part,
        write_with_if_not_exists=config.write_conditions != "none",
        write_with_if_match=config.write_conditions == "both",
        delete_with_if_match=config.delete_if_match,
        read_with_if_match=config.read_if_match,
        read_tells_etag=True,
        read_with_version=config.versions,
        read_goes_on=True,
        copy=True,
        copy_with_if_not_exists=conditions == "header"
        or (conditions == "multipart" and config.commit_conditions != "none"),
        copy_with_if_match=conditions == "header",
        copy_source_pinned=config.source_pins,
        copy_listed_up_to=config.threshold if config.source_pins else 0,
        copy_concurrent=True,
        copy_resumable=True,
        user_metadata=True,
        tags=True,
        versions=config.versions,
    )
