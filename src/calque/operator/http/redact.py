"""What a server says in a refusal, made fit to be shown.

Some servers, and proxies before them, repeat the request they refuse: with its signature, its
token, and whatever control characters it held.
"""

from __future__ import annotations

import re

_MOST = 300
_PROOFS = re.compile(
    r"(?i)(\bauthorization\b|\bbearer\b|\bsharedkey\b|\bcookie\b).*"
    r"|(\b(?:x-amz-security-token|x-amz-signature|signature|sig|access_token|upload_id)\s*[=:]\s*)[^&,\s]+"
)


def first_line(words: str) -> str:
    """The first line that is not blank, no longer than a message may be, without proofs of who
    asked."""
    line = next((each.strip() for each in words.splitlines() if each.strip()), "")
    # Redacted before it is cut: the cut could hide the name that tells what a secret is.
    plain = _PROOFS.sub(lambda found: f"{found[1] or found[2]}****", line)
    return plain if len(plain) <= _MOST else plain[:_MOST] + "…"
