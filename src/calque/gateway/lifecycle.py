"""Rules of expiry of a bucket: how long what is written under a prefix is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from calque.gateway.errors import S3Error, not_implemented
from calque.gateway.xml import Element, malformed, read_document

KIND = "lifecycle"
MOST_RULES = 1000
_LONGEST = 100 * 365


@dataclass(frozen=True, slots=True)
class ExpiryRule:
    """Objects below ``prefix`` expire after ``days``; None: the rule is about uploads alone."""

    prefix: str
    days: int | None
    is_enabled: bool


def parse_rules(document: bytes) -> list[ExpiryRule]:
    """The rules of a configuration; NotImplemented, by name, for what the store cannot keep."""
    root = read_document(document, "LifecycleConfiguration")
    root.allow_only(("Rule",))
    rules = [_read_rule(each) for each in root.children("Rule")]
    if not 1 <= len(rules) <= MOST_RULES:
        raise malformed("Between 1 and 1,000 rules are taken.")
    return rules


def find_expiry(rules: Sequence[ExpiryRule], key: str, now: datetime) -> datetime | None:
    """When an object that is written now expires: by the shortest rule that means it."""
    days = [
        rule.days
        for rule in rules
        if rule.is_enabled and rule.days is not None and key.startswith(rule.prefix)
    ]
    return now + timedelta(days=min(days)) if days else None


def _read_rule(element: Element) -> ExpiryRule:
    _offer_only(
        element,
        ("ID", "Status", "Filter", "Prefix", "Expiration", "AbortIncompleteMultipartUpload"),
    )
    status = element.require("Status")
    if status not in ("Enabled", "Disabled"):
        raise malformed("The status of a rule is Enabled or Disabled.")
    expiration, uploads = element.find("Expiration"), element.find("AbortIncompleteMultipartUpload")
    if expiration is None and uploads is None:
        raise S3Error("InvalidRequest", "At least one action needs to be specified in a rule")
    days = None
    if expiration is not None:
        _offer_only(expiration, ("Days",))
        days = _read_days(expiration.require("Days"))
    if uploads is not None:
        # The store gives up uploads that nobody went on with for a day, whatever is asked here.
        _offer_only(uploads, ("DaysAfterInitiation",))
        _read_days(uploads.require("DaysAfterInitiation"))
    return ExpiryRule(_read_prefix(element), days, status == "Enabled")


def _read_prefix(element: Element) -> str:
    chosen = element.find("Filter")
    if chosen is None:
        return element.get("Prefix") or ""
    _offer_only(chosen, ("Prefix",))
    return chosen.get("Prefix") or ""


def _read_days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and 1 <= int(text) <= _LONGEST):
        raise S3Error("InvalidArgument", "The number of days must be a positive number")
    return int(text)


def _offer_only(element: Element, names: Sequence[str]) -> None:
    for child in element.children():
        if child.name not in names:
            raise not_implemented(f"{child.name} in a {element.name} of a lifecycle"[:200])
