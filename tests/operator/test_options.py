"""Options check themselves."""

import pytest

from calque.errors import InvalidInput
from calque.operator import Operator


@pytest.mark.parametrize(
    "wrong",
    [
        {"if_not_exists": "false"},
        {"if_not_exists": None},
        {"stream": 1},
        {"carry_tags": "no"},
        {"if_match": ""},
        {"if_match": 5},
        {"source_if_match": ""},
        {"source_version": b"v"},
        {"concurrent": 0},
        {"concurrent": -1},
        {"concurrent": True},
        {"concurrent": "8"},
        {"chunk": 0},
        {"chunk": 1.5},
        {"verify": "maybe"},
        {"if_not_exists": True, "if_match": "x"},
        {"colour": "red"},
    ],
    ids=str,
)
def test_a_wrong_option_of_a_copy(wrong: dict[str, object]) -> None:
    """InvalidInput that names it; no string passes for a flag, no empty text for a condition."""
    op = Operator.from_uri("memory://")
    op.write("from", b"x")
    with pytest.raises(InvalidInput, match=list(wrong)[-1]):
        op.copy("from", "to", **wrong)  # type: ignore[arg-type]
    assert not op.exists("to")


@pytest.mark.parametrize(
    "wrong",
    [
        {"if_not_exists": "yes"},
        {"if_match": ""},
        {"content_type": 5},
        {"user": {"a": 1}},
        {"tags": {1: "a"}},
        {"concurrent": 0},
    ],
    ids=str,
)
def test_a_wrong_option_of_a_write(wrong: dict[str, object]) -> None:
    """InvalidInput that names it, and nothing is written."""
    op = Operator.from_uri("memory://")
    with pytest.raises(InvalidInput, match=list(wrong)[-1]):
        op.write("to", b"x", **wrong)  # type: ignore[arg-type]
    assert not op.exists("to")


@pytest.mark.parametrize(
    "bounds", [{"offset": -1}, {"length": -1}, {"offset": "1"}, {"length": 1.5}, {"offset": 2**63}]
)
def test_a_wrong_range(bounds: dict[str, int]) -> None:
    """Bad input, on files and objects alike; no error of the system's own."""
    for uri in ("memory://", "."):
        with pytest.raises(InvalidInput):
            Operator.from_uri(uri).read("x", **bounds)


@pytest.mark.parametrize("into", ["s3://bucket", 5])
def test_what_is_no_operator(into: object) -> None:
    """A copy goes into an Operator; a URI must be opened first."""
    op = Operator.from_uri("memory://")
    op.write("from", b"x")
    with pytest.raises(InvalidInput, match="Operator"):
        op.copy("from", "to", into=into)  # type: ignore[arg-type]
