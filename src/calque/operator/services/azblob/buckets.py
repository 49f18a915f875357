"""The containers of an account."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit
from xml.sax.saxutils import unescape

from calque.operator.http.paging import PageGuard
from calque.operator.layers.chain import Call, Chain
from calque.operator.service import Bucket
from calque.operator.services.azblob.client import Link
from calque.operator.services.azblob.config import AzblobConfig
from calque.operator.services.azblob.errors import error_of
from calque.operator.uri import ServiceUri

_CONTAINER = re.compile(rb"<Container>.*?<Name>([^<]*)</Name>(.*?)</Container>", re.DOTALL)
_CHANGED = re.compile(rb"<Last-Modified>([^<]*)</Last-Modified>")
_NEXT = re.compile(rb"<NextMarker>([^<]+)</NextMarker>")
_ANY = "any-container"


class _AccountLink(Link):
    def path(self, blob: str | None) -> str:
        return f"{urlsplit(self.config.endpoint).path}/"


def list_buckets(uri: ServiceUri, options: Mapping[str, object], chain: Chain) -> Iterator[Bucket]:
    """Every container of the account, by name."""
    by_account = "." in uri.host
    named = replace(uri, path=_ANY) if by_account else replace(uri, host=_ANY, path="")
    config = AzblobConfig.parse(named, options)
    link, where = _AccountLink(config), f"az://{config.account}.blob/"
    turning, marker = PageGuard(where), ""
    try:
        while True:
            query = {"comp": "list", **({"marker": marker} if marker else {})}

            def request(call: Call, query: dict[str, str] = query) -> bytes:
                answer = link.exchange(call, "GET", None, query)
                if not 200 <= answer.status < 300:
                    raise error_of(answer, where, "list")
                return answer.body

            page = chain.send("list", "", request)
            for name, rest in _CONTAINER.findall(page):
                yield Bucket(unescape(name.decode()), _moment(_CHANGED.search(rest)))
            following = _NEXT.search(page)
            if following is None:
                return
            marker = unescape(following[1].decode())
            turning.check(marker, ())
    finally:
        link.close()


def _moment(found: re.Match[bytes] | None) -> datetime | None:
    try:
        return parsedate_to_datetime(found[1].decode()) if found else None
    except ValueError:
        return None
