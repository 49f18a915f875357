"""Preconditions: generation and metageneration, match and not-match, target and source."""

from __future__ import annotations

from typing import NoReturn

from tests.servers.gcs_fake.model import Stored
from tests.servers.gcs_fake.replies import ApiError, number


def check(
    query: dict[str, str], found: Stored | None, *, reading: bool = False, source: bool = False
) -> None:
    """Refuse unless every precondition that was sent holds.

    Reading: a false not-match is 304; everything else that is false is 412. On a target,
    ``ifGenerationMatch=0`` holds only when there is no live object.
    """
    prefix = "ifSource" if source else "if"
    generation = found.generation if found else 0
    wanted = number(query, f"{prefix}GenerationMatch")
    if wanted is not None and wanted != generation:
        _refuse(f"{prefix}GenerationMatch")
    unwanted = number(query, f"{prefix}GenerationNotMatch")
    if unwanted is not None and unwanted == generation:
        _refuse(f"{prefix}GenerationNotMatch", 304 if reading else 412)
    _check_metageneration(query, found, prefix, reading)


def _check_metageneration(
    query: dict[str, str], found: Stored | None, prefix: str, reading: bool
) -> None:
    wanted = number(query, f"{prefix}MetagenerationMatch")
    if wanted is not None and (found is None or found.metageneration != wanted):
        _refuse(f"{prefix}MetagenerationMatch")
    unwanted = number(query, f"{prefix}MetagenerationNotMatch")
    if unwanted is not None and (found is None or found.metageneration == unwanted):
        _refuse(f"{prefix}MetagenerationNotMatch", 304 if reading else 412)


def _refuse(name: str, status: int = 412) -> NoReturn:
    raise ApiError(
        status,
        "conditionNotMet",
        "At least one of the pre-conditions you specified did not hold.",
        name,
    )
