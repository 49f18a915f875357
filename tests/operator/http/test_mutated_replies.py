"""Whatever a server answers, only errors of ours come out of any verb."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

import pytest

from calque.errors import CalqueError, Unexpected
from calque.operator import Operator
from calque.operator.layers import Retry, Timeout
from tests.operator.http.clouds import NAMES, answering, nowhere
from tests.operator.http.mutants import mutate
from tests.operator.http.replies import (
    LARGE,
    PART,
    Answer,
    answer_azblob,
    answer_gcs,
    answer_s3,
)

_ONCE = (Retry(attempts=1), Timeout(step=20, slow=20))
_OPTIONS: Mapping[str, Mapping[str, object]] = {
    "s3": {"threshold": 1024, "part_size": PART, "versions": True},
    "gcs": {"versions": True},
    "azblob": {"threshold": 1024, "part_size": PART},
}


def _answerer(name: str) -> Callable[[str], Answer]:
    return {"s3": lambda: answer_s3, "gcs": lambda: answer_gcs, "azblob": answer_azblob}[name]()


def _verbs(op: Operator) -> Iterator[tuple[str, Callable[[], object]]]:
    yield "stat", lambda: op.stat("x")
    yield "exists", lambda: op.exists("x")
    yield "read", lambda: op.read("x")
    yield "read a range", lambda: op.read("x", offset=1, length=3)
    yield "list", lambda: list(op.list())
    yield "list a level", lambda: list(op.list(recursive=False))
    yield "list versions", lambda: list(op.list_versions())
    yield "leftovers", lambda: list(op.leftovers())
    yield "copy", lambda: op.copy("x", "y")
    yield "copy once", lambda: op.copy("x", "y", if_not_exists=True)
    yield "copy much", lambda: op.copy("big", "bigger")
    yield "copy much once", lambda: op.copy("big", "bigger", if_not_exists=True)
    yield "stream", lambda: op.copy("x", "y", stream=True)
    yield "write", lambda: op.write("x", b"hello")
    yield "write over", lambda: op.write("x", b"hello", if_match="7")
    yield "write much", lambda: op.write("big", bytes(LARGE))
    yield "delete", lambda: op.delete("x")
    yield "delete if", lambda: op.delete("x", if_match="e")
    yield "rename", lambda: op.rename("x", "y")
    yield "remove all", lambda: op.remove_all("d/")
    yield "check", lambda: op.check()


def _try_mutants(name: str, seeds: range) -> None:
    answer = _answerer(name)
    chance = random.Random()

    def reply(head: str) -> bytes:
        right = answer(head)
        told = mutate(right, chance) if chance.random() < 0.5 else right
        return told.render(bodiless=head.startswith("HEAD"))

    with answering(reply) as endpoint:
        op = nowhere(name).open(endpoint, layers=_ONCE, **_OPTIONS[name])
        for seed in seeds:
            for verb, call in _verbs(op):
                chance.seed(f"{seed} {verb}")
                try:
                    call()
                except CalqueError:
                    pass
                except Exception as error:
                    error.add_note(f"{name}: {verb}, seed {seed}")
                    raise


@pytest.mark.parametrize("name", NAMES)
def test_only_errors_of_ours_come_out(name: str) -> None:
    """A reply with one thing wrong is taken, or refused by an error of our tree."""
    _try_mutants(name, range(4))


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_nor_out_of_many_more(name: str) -> None:
    """The same, for long."""
    _try_mutants(name, range(4, 150))


@pytest.mark.parametrize("name", NAMES)
def test_right_replies_are_taken(name: str) -> None:
    """The replies that are mutated are good ones: most verbs succeed on them."""
    answer = _answerer(name)
    succeeded = []
    with answering(lambda head: answer(head).render(bodiless=head[:4] == "HEAD")) as endpoint:
        op = nowhere(name).open(endpoint, layers=_ONCE, **_OPTIONS[name])
        for verb, call in _verbs(op):
            try:
                call()
            except CalqueError:
                continue  # what needs a server that remembers
            succeeded.append(verb)
    assert {"stat", "read", "list", "copy", "copy much", "stream", "write"} <= set(succeeded)


_ENTRY = b"<Key>a</Key><VersionId>1</VersionId><Size>5</Size>"
_GCS = b'{"items": [{"name": "a", "generation": "1", "size": "5"}]}'
_BLOB = b"<Name>a</Name><Properties><Content-Length>5</Content-Length></Properties>"


@pytest.mark.parametrize("size", [b"big", b"-1", b"+5", b"5_0", b"1e3", "٣".encode(), b"9" * 5000])
@pytest.mark.parametrize("name", NAMES)
def test_a_size_that_is_none(name: str, size: bytes) -> None:
    """Listings of every service, and of versions, refuse a size that is no number."""
    pages = {
        "s3": b"<ListBucketResult><Contents>" + _ENTRY + b"</Contents></ListBucketResult>",
        "gcs": _GCS,
        "azblob": b"<EnumerationResults><Blobs><Blob>" + _BLOB + b"</Blob></Blobs>"
        b"</EnumerationResults>",
    }
    versions = b"<ListVersionsResult><Version>" + _ENTRY + b"</Version></ListVersionsResult>"
    told: dict[str, bytes] = {"page": b""}
    with answering(lambda head: Answer(told["page"]).render(bodiless=False)) as endpoint:
        op = nowhere(name).open(endpoint, layers=_ONCE, **_OPTIONS[name])
        told["page"] = pages[name]
        assert [entry.size for entry in op.list()] == [5]
        told["page"] = pages[name].replace(b'"5"', b'"%s"' % size).replace(b">5<", b">%s<" % size)
        with pytest.raises(Unexpected):
            list(op.list())
        if name == "s3":
            told["page"] = versions.replace(b">5<", b">%s<" % size)
            with pytest.raises(Unexpected):
                list(op.list_versions())
