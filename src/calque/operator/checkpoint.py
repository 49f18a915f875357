"""The portable checkpoint: what another process needs to continue a copy, and no secret."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from calque.errors import CheckpointInvalid
from calque.operator.options import CopyOptions
from calque.values import Metadata, SourceIdentity

VERSION = 1
_EXECUTION = ("concurrent",)
"""Options that say how a copy runs, not what it makes: a resume may choose others."""


@dataclass(frozen=True, slots=True)
class CopyIdentity:
    """Which copy this is: from where, to where, on what terms."""

    scheme: str
    source: Metadata
    source_location: str
    target: str
    target_location: str
    options: CopyOptions


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The envelope of an unfinished copy. ``payload`` belongs to the service alone.

    The digest finds damage and edits made by hand. It is no signature, so whatever the envelope
    says is checked again against the server before anything is written.
    """

    scheme: str
    source_path: str
    source: SourceIdentity
    target_path: str
    target_location: str
    options: Mapping[str, Any]
    plan: Mapping[str, Any] | None
    payload: Mapping[str, Any]
    created: datetime
    version: int = VERSION

    @classmethod
    def of(cls, identity: CopyIdentity, state: Mapping[str, Any]) -> Checkpoint:
        """The checkpoint of a copy in the state that its driver reports."""
        payload = dict(state)
        plan = payload.pop("plan", None)
        return cls(
            scheme=identity.scheme,
            source_path=identity.source.path,
            source=SourceIdentity.of(identity.source_location, identity.source),
            target_path=identity.target,
            target_location=identity.target_location,
            options=asdict(identity.options),
            plan=plan,
            payload=payload,
            created=datetime.now(UTC),
        )

    @property
    def state(self) -> dict[str, Any]:
        """What the driver reported: the payload with the plan put back."""
        return dict(self.payload) if self.plan is None else {**self.payload, "plan": self.plan}

    @property
    def copy_options(self) -> CopyOptions:
        """The options the copy was started with."""
        try:
            return CopyOptions(**self.options)
        except (TypeError, ValueError) as error:
            raise CheckpointInvalid("the checkpoint's options cannot be read") from error

    @property
    def age(self) -> float:
        """Seconds since it was made."""
        return (datetime.now(UTC) - self.created).total_seconds()

    def refuse_other_options(self, options: CopyOptions) -> None:
        """Raise CheckpointInvalid where options would make another target than was begun."""
        ours = self.copy_options
        # How many requests fly at once changes nothing of the target, so it may differ.
        same = replace(options, **{name: getattr(ours, name) for name in _EXECUTION})
        if same != ours:
            raise CheckpointInvalid(
                "the checkpoint belongs to a copy with other options",
                hint="Resume without options to go on as it was begun, or copy anew.",
            )

    def to_json(self) -> str:
        """The envelope as JSON, with its digest."""
        body = self._body()
        return json.dumps({**body, "digest": _digest(body)}, indent=1, sort_keys=True)

    def _body(self) -> dict[str, Any]:
        return {
            "calque_checkpoint": self.version,
            "scheme": self.scheme,
            "source": {"path": self.source_path, **self.source.to_json()},
            "destination": {"path": self.target_path, "location": self.target_location},
            "options": dict(self.options),
            "plan": self.plan,
            "payload": dict(self.payload),
            "created": self.created.isoformat(),
        }

    @classmethod
    def from_json(cls, text: str | bytes) -> Checkpoint:
        """Read an envelope; raises CheckpointInvalid where it is damaged, edited or foreign."""
        try:
            body = json.loads(text)
            digest = body.pop("digest")
            version = body["calque_checkpoint"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CheckpointInvalid("this is not a checkpoint of calque") from error
        if version != VERSION:
            raise CheckpointInvalid(
                f"the checkpoint is of version {version!r}, this calque reads {VERSION}",
                hint="Resume with the calque that made it, or copy anew.",
            )
        # Against edits and torn writes, not against an attacker: whoever can write the file can
        # make its digest too.
        if digest != _digest(body):
            raise CheckpointInvalid(
                "the checkpoint was changed after it was made: its digest does not fit",
                hint="Copy anew; `calque sweep` removes what the old copy left.",
            )
        return cls._read(body)

    @classmethod
    def _read(cls, body: Mapping[str, Any]) -> Checkpoint:
        try:
            created = datetime.fromisoformat(body["created"]).astimezone(UTC)
            return cls(
                scheme=body["scheme"],
                source_path=body["source"]["path"],
                source=SourceIdentity.from_json(body["source"]),
                target_path=body["destination"]["path"],
                target_location=body["destination"]["location"],
                options=dict(body["options"]),
                plan=body["plan"],
                payload=dict(body["payload"]),
                created=created,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointInvalid("the checkpoint lacks what a resume needs") from error


def _digest(body: Mapping[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    return "sha256:" + hashlib.sha256(canonical).hexdigest()
