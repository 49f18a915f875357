"""Words of servers."""

import pytest

from calque.operator.http.redact import first_line


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("", ""),
        ("\r\n  the key is wrong \nsecond line", "the key is wrong"),
        ("GET /x?sv=1&sig=abc%2B&se=2 was refused", "GET /x?sv=1&sig=****&se=2 was refused"),
        ("got Authorization: Bearer abc.def and more", "got Authorization****"),
        ("token Bearer abc", "token Bearer****"),
        ("x-amz-security-token: abc, other", "x-amz-security-token: ****, other"),
        ("the signature does not match", "the signature does not match"),
        ("y" * 1000, "y" * 300 + "…"),
    ],
)
def test_the_first_line_without_proofs(words: str, shown: str) -> None:
    """One line of bounded length, in which no signature or token stands."""
    assert first_line(words) == shown
