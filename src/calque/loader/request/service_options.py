"""The options of a stage or a table: what opens its service besides its location."""

from __future__ import annotations

from collections.abc import Mapping

from calque.errors import ConfigInvalid
from calque.operator.registry import secrets_of
from calque.operator.uri import scheme_of


def service_options(
    location: str, options: Mapping[str, object], section: str
) -> dict[str, object]:
    """The options of a place, fit to travel to executors; secrets are refused.

    They would end up in pickles and in the files of Spark. A provider's name travels instead, and
    is called where the service is opened.
    """
    secret = sorted(secrets_of(scheme_of(location)) & options.keys())
    if secret:
        raise ConfigInvalid(
            f"{section}: {', '.join(secret)} is a secret, which does not belong in options",
            hint="Give it by the environment, or name a function that returns it: "
            'credentials = "package.module:function".',
        )
    return dict(options)
