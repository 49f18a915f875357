"""Same file? The rules, one by one and by property."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from calque.ledger import GRAIN, Known, Verdict, is_racy, judge
from calque.ledger.identity import (
    DAY,
    is_settled,
    is_stale,
    is_uncertain,
    micros,
    moment,
    needs_renewal,
)
from calque.values import SourceIdentity

BASE = datetime(2026, 1, 1, tzinfo=UTC)
OLD = micros(BASE + timedelta(hours=1)) or 0

etags = st.sampled_from([None, "a", "b"])
hashes = st.sampled_from([None, "h"])
tokens = st.sampled_from([None, "t1", "t2"])
stamps = st.sampled_from([None, BASE, BASE + timedelta(microseconds=1), BASE + timedelta(days=1)])
sizes = st.sampled_from([0, 1, 2])


@st.composite
def records(draw: st.DrawFn) -> Known:
    """What a ledger may know of a file."""
    stamp = draw(stamps)
    return Known(
        "x",
        draw(sizes),
        draw(etags),
        micros(stamp),
        None,
        draw(tokens),
        draw(hashes),
        draw(st.sampled_from([OLD, micros(BASE) or 0])),
        0,
        "load",
    )


found = st.builds(
    lambda size, etag, stamp, token: SourceIdentity("x", size, etag, None, stamp, token),
    sizes,
    etags,
    stamps,
    tokens,
)


@given(records(), found)
def test_equal_etags_decide(known: Known, file: SourceIdentity) -> None:
    """Both etags present and equal: the same file, whatever else says."""
    if known.etag is not None and known.etag == file.etag:
        assert judge(known, file) is Verdict.SAME


@given(records(), found)
def test_another_length_is_another_file(known: Known, file: SourceIdentity) -> None:
    """Another length is another file unless equal etags say otherwise."""
    if known.size != file.size and (known.etag is None or known.etag != file.etag):
        assert judge(known, file) is Verdict.DIFFERENT


@given(records(), found)
def test_never_same_on_differing_etags(known: Known, file: SourceIdentity) -> None:
    """Differing etags are never the same by metadata alone; only content can tell."""
    if known.etag and file.etag and known.etag != file.etag:
        assert judge(known, file) is not Verdict.SAME


@given(records(), found)
def test_check_needs_a_hash_and_equal_length(known: Known, file: SourceIdentity) -> None:
    """Content is only asked for where it can decide."""
    if judge(known, file) is Verdict.CHECK:
        assert known.content_hash is not None
        assert known.size == file.size


@given(records(), found)
def test_without_etag_length_and_time_decide(known: Known, file: SourceIdentity) -> None:
    """One etag missing, nothing racy: equal length and time are the same file, else not."""
    if (known.etag is not None and file.etag is not None) or is_racy(known):
        return
    same = known.size == file.size and known.last_modified == micros(file.last_modified)
    same = same and known.last_modified is not None
    assert (judge(known, file) is Verdict.SAME) == same


@given(records(), found)
def test_racy_is_verified_by_hash(known: Known, file: SourceIdentity) -> None:
    """Within the grain of the time stamp only content, or else the token, is believed."""
    if not is_racy(known) or known.size != file.size:
        return
    if known.last_modified != micros(file.last_modified):
        return
    if known.content_hash is not None:
        assert judge(known, file) is Verdict.CHECK
    elif known.token and file.token and known.token != file.token:
        assert judge(known, file) is Verdict.DIFFERENT
    else:
        assert judge(known, file) is Verdict.SAME


def test_racy_only_without_etag_and_near_the_load() -> None:
    """A time stamp within its grain of the load may hide a later write; an etag cannot."""
    stamp = micros(BASE) or 0
    near = Known("x", 1, None, stamp, None, None, "h", stamp + GRAIN, 0, "l")
    assert is_racy(near)
    assert not is_racy(near._replace(verified_at=stamp + GRAIN + 1))
    assert not is_racy(near._replace(etag="e"))
    assert is_racy(near._replace(last_modified=stamp + 10 * DAY))


@given(st.datetimes(timezones=st.just(UTC)))
def test_moments_survive(stamp: datetime) -> None:
    """A time goes into the ledger and comes out the same, to the microsecond."""
    assert moment(micros(stamp)) == stamp


def test_renewal_in_the_last_quarter() -> None:
    """A record is renewed once less than a quarter of its life is left."""
    known = Known("x", 1, None, 0, None, None, None, 0, 100, "l")
    assert not needs_renewal(known, 75, 100)
    assert needs_renewal(known, 76, 100)


def test_uncertain_needs_both_to_be_old() -> None:
    """Only an old file in a table with an old first load may have been forgotten."""
    now, life = 1000 * DAY, 64 * DAY
    old = SourceIdentity("x", 1, last_modified=moment(now - 65 * DAY))
    young = SourceIdentity("x", 1, last_modified=moment(now - DAY))
    assert is_uncertain(old, now - 65 * DAY, now, life)
    assert not is_uncertain(old, now - DAY, now, life)
    assert not is_uncertain(young, now - 65 * DAY, now, life)
    assert not is_uncertain(old, None, now, life)


def test_uncertain_by_what_was_forgotten() -> None:
    """No younger than a file whose record was dropped: uncertain, whatever the clock says."""
    found = SourceIdentity("x", 1, last_modified=moment(100 * DAY))
    for now in (0, 100 * DAY, 1000 * DAY):
        assert is_uncertain(found, None, now, 64 * DAY, forgotten=100 * DAY)
        assert not is_uncertain(found, None, now, 64 * DAY, forgotten=100 * DAY - 1)
    assert not is_uncertain(SourceIdentity("x", 1), None, 0, 64 * DAY, forgotten=100 * DAY)


@given(
    records(),
    found,
    st.sampled_from([None, "v1", "v2"]),
    st.sampled_from([None, "v1"]),
    st.integers(0, 4 * DAY),
)
def test_settled_is_what_the_rules_say_together(
    known: Known, file: SourceIdentity, noted: str | None, version: str | None, left: int
) -> None:
    """The quick answer is never another than that of the rules one by one."""
    known = known._replace(version=noted, expires_at=left)
    file = replace(file, version=version)
    together = (
        judge(known, file) is Verdict.SAME
        and not is_stale(known, file)
        and not needs_renewal(known, 0, 4 * DAY)
    )
    assert is_settled(known, file, DAY) == together
