"""From a request to a Copier: everything that is checked before a copy writes anything."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from calque.errors import (
    CheckpointInvalid,
    ConditionNotMatch,
    IsADirectory,
    IsSameFile,
    NotFound,
    Unsupported,
)
from calque.operator import paths
from calque.operator.capability import Capability
from calque.operator.checkpoint import Checkpoint, CopyIdentity
from calque.operator.copier import Copier, Route
from calque.operator.drivers.finished import FinishedDriver, is_finished
from calque.operator.drivers.multipart import MultipartDriver
from calque.operator.drivers.stream import NAME as STREAM
from calque.operator.drivers.stream import StreamDriver, write_options
from calque.operator.drivers.streamed_parts import NAME as STREAMED
from calque.operator.drivers.streamed_parts import StreamedParts, StreamedPartsDriver
from calque.operator.layers.stop import Stopping, StopSignal
from calque.operator.options import CopyOptions
from calque.operator.service import CopyDriver, PartedWriting, Service, Tagging
from calque.values import Metadata, SourceIdentity


def start_copy(
    origin: Service, wanted: str | Metadata, into: Service, target: str, options: CopyOptions
) -> Copier:
    """A copier that has sent one request at most: the stat of its source."""
    source = wanted.path if isinstance(wanted, Metadata) else wanted
    paths.file_path(source, "copy")
    paths.file_path(target, "copy to")
    # Refusals that need no request come first: a hopeless copy costs nothing.
    _refuse_same(origin, source, into, target)
    _refuse_impossible(origin.capability, into.capability, options)
    found = _find_source(origin, wanted, options)
    identity = CopyIdentity(
        scheme=origin.scheme,
        source=found,
        source_location=origin.location(source),
        target=target,
        target_location=into.location(target),
        options=options,
    )
    stop = StopSignal()
    driver, route = _choose_driver(
        origin, found, into, target, options, stop, listed=found is wanted
    )
    server = route == "server-side" and into.capability.copy_resumable
    # A copy made by one request has no parts to keep: resuming it means sending it again.
    streamed = options.stream_parts and isinstance(into, PartedWriting)
    resumable = server or (route == "through the client" and streamed)
    return Copier(driver, identity, route=route, resumable=resumable, stop=stop)


def _make_stoppable(origin: Service, into: Service, stop: StopSignal) -> tuple[Service, Service]:
    """Both ends over the same connections, their requests ending soon after the signal."""
    ends = origin.with_chain(origin.chain.around(Stopping(stop)))
    return ends, ends if into is origin else into.with_chain(into.chain.around(Stopping(stop)))


def _refuse_same(origin: Service, source: str, into: Service, target: str) -> None:
    if origin.location(source) != into.location(target):
        return
    # The same name may lie on two servers, so equal locations alone prove nothing.
    if origin is into or origin.identity(source) == into.identity(target):
        raise IsSameFile(
            f"{origin.location(source)} cannot be copied to itself",
            hint="Nothing was done and the object is unharmed.",
        )


def _refuse_impossible(origin: Capability, into: Capability, options: CopyOptions) -> None:
    """Conditions are atomic or refused here: never looked up first and then hoped for."""
    if options.source_version is not None and not origin.read_with_version:
        raise Unsupported("the source's service cannot name a version")
    unkept = []
    if options.stream is not True:
        unkept.append(_unkept_by_copy(into, options))
    if options.stream is not False:
        unkept.append(_unkept_by_write(into, options))
    if all(unkept):
        raise Unsupported(str(unkept[-1]))


def _unkept_by_copy(into: Capability, options: CopyOptions) -> str | None:
    """Why a copy inside the service could not keep the condition on its target."""
    if options.if_not_exists and not into.copy_with_if_not_exists:
        return "the target's service has no atomic if_not_exists for copies"
    if options.if_match is not None and not into.copy_with_if_match:
        return "the target's service has no atomic if_match for copies"
    return None


def _unkept_by_write(into: Capability, options: CopyOptions) -> str | None:
    """Why a write could not keep it, which is what a copy through the client ends in."""
    if options.if_not_exists and not into.write_with_if_not_exists:
        return "the target's service has no atomic if_not_exists for writes"
    if options.if_match is not None and not into.write_with_if_match:
        return "the target's service has no atomic if_match for writes"
    return None


def _find_source(origin: Service, wanted: str | Metadata, options: CopyOptions) -> Metadata:
    """The source, looked at once: by a stat, or by the listing that the caller has it from."""
    if isinstance(wanted, str):
        found = origin.stat(wanted, version=options.source_version)
        expected = options.source_if_match
    elif _is_enough(origin, wanted, options):
        found, expected = wanted, options.source_if_match
    else:
        return _stat_listed(origin, wanted, options)
    return _refuse_other(origin, found, expected)


def _stat_listed(origin: Service, listed: Metadata, options: CopyOptions) -> Metadata:
    """What a stat says of a listed object, headers and all; raises where it is another by now."""
    pinned = listed.version if origin.capability.read_with_version else None
    found = origin.stat(listed.path, version=options.source_version or pinned)
    return _refuse_other(origin, found, options.source_if_match or listed.pin)


def _refuse_other(origin: Service, found: Metadata, expected: str | None) -> Metadata:
    if found.is_dir:
        raise IsADirectory(f"cannot copy {origin.location(found.path)}: it is a directory")
    if expected is not None and expected != found.pin:
        raise ConditionNotMatch(
            f"{origin.location(found.path)} is not the object that was asked for",
            hint="It was replaced since it was looked at; nothing was copied.",
        )
    return found


def _is_enough(origin: Service, listed: Metadata, options: CopyOptions) -> bool:
    most = origin.capability.copy_listed_up_to
    known = listed.pin is not None and options.source_version is None
    return known and most > 0 and listed.size <= most


def _choose_driver(
    origin: Service,
    source: Metadata,
    into: Service,
    target: str,
    options: CopyOptions,
    stop: StopSignal,
    *,
    listed: bool,
) -> tuple[CopyDriver, Route]:
    if options.stream is not True:
        try:
            unkept = _unkept_by_copy(into.capability, options)
            if unkept:
                raise Unsupported(unkept)
            here, there = _make_stoppable(origin, into, stop)
            return here.copy(source, target, options, into=there), "server-side"
        except Unsupported as error:
            if not options.stream:
                error.hint = error.hint or (
                    "With stream=True the bytes pass through this client instead."
                )
                raise
    if listed:
        source = _stat_listed(origin, source, options)
    if options.stream_parts and _takes_parts(into, source):
        here, there = _make_stoppable(origin, into, stop)
        verbs = _streamed_parts(here, source, there, target, options)
        driver = StreamedPartsDriver(verbs, verbs.plan, concurrent=options.concurrent)
        return driver, "through the client"
    return StreamDriver(origin, source, into, target, options), "through the client"


def _takes_parts(into: Service, source: Metadata) -> bool:
    large = source.size > into.capability.write_at_once_up_to
    return large and isinstance(into, PartedWriting)


def _streamed_parts(
    origin: Service, source: Metadata, into: Service, target: str, options: CopyOptions
) -> StreamedParts:
    if not isinstance(into, PartedWriting):
        raise Unsupported(f"{into.scheme} keeps no parts of a write")
    if options.carry_tags and into.capability.user_metadata and isinstance(origin, Tagging):
        source = replace(source, tags=origin.tags_to_carry(source))
    writing = into.write_in_parts(target, write_options(source, options))
    return StreamedParts.begin(origin, source, into, writing, options)


def resume_copy(
    origin: Service, into: Service, checkpoint: Checkpoint, options: CopyOptions
) -> Copier:
    """The copier of an earlier copy, after everything in its checkpoint was compared."""
    checkpoint.refuse_other_options(options)
    _refuse_foreign(origin, into, checkpoint)
    found = _find_same_source(origin, checkpoint)
    identity = CopyIdentity(
        scheme=checkpoint.scheme,
        source=found,
        source_location=checkpoint.source.location,
        target=checkpoint.target_path,
        target_location=checkpoint.target_location,
        options=options,
    )
    stop = StopSignal()
    here, there = _make_stoppable(origin, into, stop)
    driver = _resume_driver(here, found, there, checkpoint, options)
    route: Route = "through the client" if _is_streamed(checkpoint) else "server-side"
    return Copier(driver, identity, route=route, resumable=True, resumed=True, stop=stop)


def abort_copy(origin: Service, into: Service, checkpoint: Checkpoint) -> None:
    """Remove what an earlier copy has left at its target; its source may be another by now."""
    _refuse_foreign(origin, into, checkpoint)
    try:
        found = _find_same_source(origin, checkpoint)
    except CheckpointInvalid:
        # The source is not read here: its old metadata is enough to find what the copy left.
        known = checkpoint.source
        found = Metadata(
            checkpoint.source_path,
            known.size,
            etag=known.etag,
            version=known.version,
            token=known.token,
        )
    _resume_driver(origin, found, into, checkpoint, checkpoint.copy_options).abort()


def copy_parts(
    origin: Service,
    into: Service,
    checkpoint: Checkpoint,
    numbers: Collection[int],
    *,
    concurrent: int,
) -> int:
    """Bring some parts of a copy that another process has opened, and will commit; their bytes.

    Safe to do twice, also at once: a part is the same whoever brings it.
    """
    options = replace(checkpoint.copy_options, concurrent=concurrent)
    _refuse_foreign(origin, into, checkpoint)
    found = _find_same_source(origin, checkpoint)
    driver = _resume_driver(origin, found, into, checkpoint, options)
    if not isinstance(driver, MultipartDriver):
        raise CheckpointInvalid("the copy of the checkpoint is not made of parts")
    return driver.copy_some(numbers)


def _is_streamed(checkpoint: Checkpoint) -> bool:
    return checkpoint.state.get("driver") == STREAMED


def _resume_driver(
    origin: Service, source: Metadata, into: Service, checkpoint: Checkpoint, options: CopyOptions
) -> CopyDriver:
    state, target = checkpoint.state, checkpoint.target_path
    if not is_finished(state):
        if state.get("driver") == STREAM:
            raise CheckpointInvalid("too little was copied to be kept", hint="Copy anew.")
        if _is_streamed(checkpoint):
            verbs = _streamed_parts(origin, source, into, target, options)
            return StreamedPartsDriver.resume_streamed(verbs, options, state)
        return origin.resume(source, target, options, state, into=into)
    try:
        return FinishedDriver(state, into.stat(target))
    except NotFound as error:
        raise CheckpointInvalid(
            "the copy was complete, but its target is gone", hint="Copy anew."
        ) from error


def _refuse_foreign(origin: Service, into: Service, checkpoint: Checkpoint) -> None:
    if checkpoint.scheme != origin.scheme:
        raise CheckpointInvalid(
            f"the checkpoint is of {checkpoint.scheme}, this operator is {origin.scheme}"
        )
    if not into.capability.copy_resumable:
        raise Unsupported(f"{into.scheme} cannot resume copies")
    ours = (
        origin.location(paths.file_path(checkpoint.source_path, "copy")),
        into.location(paths.file_path(checkpoint.target_path, "copy to")),
    )
    theirs = (checkpoint.source.location, checkpoint.target_location)
    if ours != theirs:
        raise CheckpointInvalid(
            f"the checkpoint copies {theirs[0]} to {theirs[1]}, "
            f"from here that would be {ours[0]} to {ours[1]}",
            hint="Resume with operators on the roots that the copy was begun with.",
        )
    lifetime = into.capability.copy_resumable_for
    if lifetime is not None and checkpoint.age > lifetime:
        raise CheckpointInvalid(
            f"the checkpoint is {checkpoint.age / 86400:.1f} days old, "
            f"{into.scheme} keeps unfinished copies for {lifetime / 86400:g}",
            hint="Copy anew.",
        )


def _find_same_source(origin: Service, checkpoint: Checkpoint) -> Metadata:
    expected = checkpoint.source
    # A service with versions still has the pinned one even when a newer object took the name.
    pinned = expected.version if origin.capability.read_with_version else None
    try:
        found = origin.stat(checkpoint.source_path, version=pinned)
    except NotFound as error:
        raise CheckpointInvalid(
            f"the source {expected.location} is gone", hint="`calque sweep` removes what is left."
        ) from error
    actual = SourceIdentity.of(expected.location, found)
    if expected.version is None:  # it came from a listing, which tells no version
        actual = replace(actual, version=None)
    if _bytes_of(actual) != _bytes_of(expected):
        raise CheckpointInvalid(
            f"the source {expected.location} has changed since the copy began",
            hint="Copy anew; `calque sweep` removes what the old copy left.",
        )
    return found


def _bytes_of(identity: SourceIdentity) -> tuple[object, ...]:
    return identity.size, identity.etag, identity.version, identity.token
