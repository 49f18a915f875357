"""Rules of a bucket for browsers: who may ask for what, from where."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calque.gateway.errors import S3Error
from calque.gateway.xml import Element, malformed, read_document

KIND = "cors"
METHODS = ("GET", "PUT", "HEAD", "POST", "DELETE")
MOST_RULES = 100


@dataclass(frozen=True, slots=True)
class CorsRule:
    """One rule; ``*`` stands for anything in origins and headers."""

    origins: tuple[str, ...]
    methods: tuple[str, ...]
    headers: tuple[str, ...]
    exposed: tuple[str, ...]
    max_age: int | None

    def allows(self, origin: str, method: str, headers: Sequence[str]) -> bool:
        return (
            method in self.methods
            and _matches_any(self.origins, origin, re.NOFLAG)
            and all(_matches_any(self.headers, each, re.IGNORECASE) for each in headers)
        )

    def answer(self, origin: str) -> dict[str, str]:
        """What the browser is told."""
        anyone = "*" in self.origins
        told = {
            "Access-Control-Allow-Origin": "*" if anyone else origin,
            "Access-Control-Allow-Methods": ", ".join(self.methods),
            "Vary": "Origin, Access-Control-Request-Headers, Access-Control-Request-Method",
        }
        if not anyone:
            told["Access-Control-Allow-Credentials"] = "true"
        if self.exposed:
            told["Access-Control-Expose-Headers"] = ", ".join(self.exposed)
        if self.max_age is not None:
            told["Access-Control-Max-Age"] = str(self.max_age)
        return told


def parse_rules(document: bytes) -> list[CorsRule]:
    """The rules of a configuration; MalformedXML or InvalidRequest when it is none."""
    root = read_document(document, "CORSConfiguration")
    root.allow_only(("CORSRule",))
    rules = [_read_rule(each) for each in root.children("CORSRule")]
    if not 1 <= len(rules) <= MOST_RULES:
        raise malformed("Between 1 and 100 rules are taken.")
    return rules


def _read_rule(element: Element) -> CorsRule:
    known = ("ID", "AllowedOrigin", "AllowedMethod", "AllowedHeader", "ExposeHeader")
    element.allow_only((*known, "MaxAgeSeconds"))
    origins, methods, headers, exposed = (
        tuple(each.text for each in element.children(name)) for name in known[1:]
    )
    if not origins or not methods:
        raise malformed("A rule needs an AllowedOrigin and an AllowedMethod.")
    for method in methods:
        if method not in METHODS:
            raise S3Error("InvalidRequest", f"Found unsupported HTTP method in CORS: {method}")
    for text in (*origins, *headers):
        if text.count("*") > 1:
            raise S3Error("InvalidRequest", f"{text!r} can not have more than one wildcard.")
    if any(not _is_header(each) for each in exposed):
        raise S3Error("InvalidRequest", "An ExposeHeader is no name of a header.")
    age = element.get("MaxAgeSeconds")
    if age is not None and not (age.isascii() and age.isdigit() and len(age) <= 9):
        raise malformed("MaxAgeSeconds is not a number.")
    return CorsRule(origins, methods, headers, exposed, None if age is None else int(age))


def find_rule(
    rules: Sequence[CorsRule], origin: str, method: str, headers: Sequence[str] = ()
) -> CorsRule | None:
    """The first rule that allows it."""
    return next((rule for rule in rules if rule.allows(origin, method, headers)), None)


def answer_preflight(document: bytes | None, asked: Mapping[str, str]) -> dict[str, str]:
    """What a browser is told that asks before it sends; AccessDenied when no rule allows it."""
    origin, method = asked.get("origin"), asked.get("access-control-request-method")
    if not origin or not method:
        raise S3Error("BadRequest", "Insufficient information. Origin request header needed.")
    text = asked.get("access-control-request-headers", "")
    headers = [each.strip().lower() for each in text.split(",") if each.strip()]
    rule = find_rule(parse_rules(document), origin, method, headers) if document else None
    if rule is None:
        raise S3Error(
            "AccessDenied",
            "CORSResponse: This CORS request is not allowed. This is usually because the "
            "evaluation of Origin, request method / Access-Control-Request-Method or "
            "Access-Control-Request-Headers are not whitelisted by the resource's CORS spec.",
        )
    told = rule.answer(origin)
    if headers:
        told["Access-Control-Allow-Headers"] = ", ".join(headers)
    return {name: value for name, value in told.items() if _is_one_line(value)}


def _matches_any(patterns: Sequence[str], text: str, flags: re.RegexFlag) -> bool:
    return any(_pattern(each, flags).fullmatch(text) for each in patterns)


def _pattern(text: str, flags: re.RegexFlag) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, text.split("*"))), flags | re.DOTALL)


def _is_header(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", text) is not None


def _is_one_line(text: str) -> bool:
    return text.isascii() and text.isprintable()
