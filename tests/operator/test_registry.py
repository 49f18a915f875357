"""Opening by URI, pickling, and what is refused."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from calque.errors import InvalidInput, MissingExtra, Unsupported
from calque.operator import AsyncOperator, Operator, registry
from calque.operator.layers.chain import Call, Chain
from calque.operator.layers.default import default_layers
from calque.operator.registry import REGISTRY, Entry
from calque.operator.uri import ServiceUri
from tests.operator.recorder import Recorder


def test_an_unknown_scheme_lists_those_there_are() -> None:
    """InvalidInput with every scheme in its hint."""
    with pytest.raises(InvalidInput, match="ftp://") as raised:
        Operator.from_uri("ftp://host/x")
    for scheme in REGISTRY:
        assert scheme in str(raised.value)


@pytest.mark.parametrize("uri", ["", "memory://key:secret@host/x"])
def test_bad_uris(uri: str) -> None:
    """Nothing, or credentials in the URI: refused without repeating them."""
    with pytest.raises(InvalidInput) as raised:
        Operator.from_uri(uri)
    assert "secret" not in str(raised.value)


def test_a_path_object_opens_files_and_other_things_nothing(tmp_path: Path) -> None:
    """os.PathLike is a path; bytes, numbers and None are bad input."""
    op = Operator.from_uri(tmp_path)
    op.write("a", b"1")
    assert (tmp_path / "a").read_bytes() == b"1"
    for wrong in (b"memory://", 5, None):
        with pytest.raises(InvalidInput):
            Operator.from_uri(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        op.copy(5, "b")  # type: ignore[arg-type]


def test_an_unknown_option_lists_those_there_are() -> None:
    """By keyword and by query."""
    for open_it in (
        lambda: Operator.from_uri("memory://x", colour="blue"),
        lambda: Operator.from_uri("memory://x?colour=blue"),
    ):
        with pytest.raises(InvalidInput, match="colour") as raised:
            open_it()
        assert "part_size" in str(raised.value)


def test_options_in_the_query_and_by_keyword() -> None:
    """A query's strings are read as what they mean; a keyword wins."""
    op = Operator.from_uri("memory://q/root?versions=true&part_size=5", part_size=7)
    assert op.capability.versions
    assert op.service._client.config.part_size == 7  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput):
        Operator.from_uri("memory://q?part_size=many")
    with pytest.raises(InvalidInput):
        Operator.from_uri("memory://q?part_size=1&part_size=2")


def test_a_missing_extra_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install; a service that is not there says so."""
    entries = dict(REGISTRY)
    entries["other"] = Entry("tests.operator.needs_extra", "s3")
    entries["absent"] = Entry("calque.operator.services.absent.builder")
    monkeypatch.setattr(registry, "REGISTRY", entries)
    with pytest.raises(MissingExtra, match=r"pip install 'calque\[s3\]'"):
        Operator.from_uri("other://x")
    with pytest.raises(Unsupported, match="not part of this build"):
        Operator.from_uri("absent://x")


def test_nothing_is_imported_before_it_is_used() -> None:
    """Opening one service loads no SDK of another."""
    code = (
        "import sys, calque; calque.Operator.from_uri('memory://')\n"
        "bad = {'boto3', 'botocore', 'google', 'azure', 'requests', 'pyspark', 'pyarrow'}\n"
        "print(sorted(bad & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_operator_pickles() -> None:
    """It is the same root with the same options and layers on the other side."""
    op = Operator.from_uri("memory://pickled/root", part_size=11).layer(pass_through)
    op.write("a", b"1")
    again = pickle.loads(pickle.dumps(op))
    assert again.read("a") == b"1"
    assert again.service._client.config.part_size == 11
    assert again.service.chain == op.service.chain == Chain((pass_through, *default_layers()))
    face = pickle.loads(pickle.dumps(AsyncOperator(op)))
    assert face.location("a") == op.location("a")


def test_an_operator_made_by_hand_does_not_pickle() -> None:
    """There is no URI to open it by again."""
    op = Operator(Operator.from_uri("memory://x").service)
    with pytest.raises(Unsupported):
        pickle.dumps(op)


def test_private_memory_does_not_pickle() -> None:
    """Its objects live in one operator; a copy elsewhere would be silently empty."""
    with pytest.raises(Unsupported):
        pickle.dumps(Operator.from_uri("memory://"))


def test_secrets_are_neither_kept_nor_shown() -> None:
    """A secret option reaches the builder and nothing else: not pickle, not repr, not a URI."""
    uri = "vault://box"
    op = Operator.from_uri(uri, key="hunter2", size=3)
    assert op.service.key == "hunter2"  # type: ignore[attr-defined]
    assert "hunter2" not in repr(op)
    assert b"hunter2" not in pickle.dumps(op)
    assert pickle.loads(pickle.dumps(op)).service.key is None
    with pytest.raises(InvalidInput, match="does not belong in a URI") as raised:
        Operator.from_uri("vault://box?key=hunter2")
    assert "hunter2" not in str(raised.value)


def test_credentials_come_from_a_provider_where_it_is_opened() -> None:
    """The provider's name travels, what it returns does not."""
    op = Operator.from_uri("vault://box", credentials="tests.operator.vault:provide")
    assert op.service.key == "from the provider"  # type: ignore[attr-defined]
    data = pickle.dumps(op)
    assert b"from the provider" not in data
    assert pickle.loads(data).service.key == "from the provider"
    with pytest.raises(InvalidInput, match="not in a URI"):
        Operator.from_uri("vault://box?credentials=tests.operator.vault:provide")
    for wrong in ("nocolon", "no.such:thing", "tests.operator.vault:nothing", 5):
        with pytest.raises(InvalidInput):
            Operator.from_uri("vault://box", credentials=wrong)


@pytest.fixture(autouse=True)
def _vault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service with a secret, registered for the test."""
    monkeypatch.setattr(registry, "REGISTRY", {**REGISTRY, "vault": Entry("tests.operator.vault")})


def test_layers_wrap_from_the_outside_and_leave_the_operator_alone() -> None:
    """A layer sees the requests of the operator it made, not those of the one it came from."""
    op = Operator.from_uri("memory://layers")
    inner, outer = Recorder(), Recorder()
    layered = op.layer(inner).layer(outer)
    layered.write("a", b"1")
    op.read("a")
    assert inner.verbs == outer.verbs == ["write"]
    assert layered.service.chain.layers == (outer, inner, *op.service.chain.layers)
    assert Operator.from_uri("memory://layers", layers=()).service.chain == Chain()


def test_the_uri_of_an_object_is_split_literally() -> None:
    """A question mark in a key begins no query."""
    op, path = Operator.locate("memory://box/dir/what?.txt")
    assert (op.location(), path) == ("memory://box/", "dir/what?.txt")


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("s3://bucket", ServiceUri("s3", "bucket", "")),
        ("S3://bucket/a/b/", ServiceUri("s3", "bucket", "a/b/")),
        ("s3://b/p%20q?region=eu%2Dx", ServiceUri("s3", "b", "p%20q", {"region": "eu-x"})),
        ("/data/x?y", ServiceUri("fs", "", "/data/x?y")),
        ("./x", ServiceUri("fs", "", "./x")),
        ("file:///data", ServiceUri("file", "", "/data")),
    ],
)
def test_uris(text: str, parsed: ServiceUri) -> None:
    """Scheme, host, path as written, query decoded; a plain path is a file's."""
    assert ServiceUri.parse(text) == parsed


def pass_through(call: Call, proceed: object) -> object:
    """A layer that pickles by its name."""
    return proceed(call)  # type: ignore[operator]


def test_options_behind_a_plain_path(tmp_path: Path) -> None:
    """They are options, as behind a URI; a path object, or one with a slash, is all name."""
    (tmp_path / "x").write_bytes(b"data")
    op = Operator.from_uri(f"{tmp_path}?durable=false")
    assert op.read("x") == b"data"
    assert op.service.config.durable is False  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(op)).read("x") == b"data"
    with pytest.raises(InvalidInput, match="durabel"):
        Operator.from_uri(f"{tmp_path}?durabel=false")
    odd = tmp_path / "what?really=yes"
    odd.mkdir()
    for spelled in (odd, f"{odd}/"):
        Operator.from_uri(spelled).write("y", b"odd")
    assert (odd / "y").read_bytes() == b"odd"
    found, path = Operator.locate(odd / "y?durable=false")
    assert path.endswith("/y?durable=false")
    assert found.scheme == "fs"
    assert Operator.from_uri(f"{tmp_path}/why?").location().endswith("/why?")


@pytest.mark.parametrize("half", ["s3:bucket", "gs:/b/k", "file:x", "AZ:c"])
def test_half_a_uri(half: str) -> None:
    """Two slashes are missing: an error, and no folder of that name."""
    with pytest.raises(InvalidInput, match="slashes"):
        Operator.from_uri(half)
    with pytest.raises(InvalidInput, match="slashes"):
        Operator.locate(half)
