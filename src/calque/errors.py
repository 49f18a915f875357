"""The one error tree.

::

    CalqueError
    ├── InvalidInput            the request is malformed: correct it           (ValueError)
    │   ├── ConfigInvalid       calque.toml, an environment variable or a flag
    │   ├── IsADirectory        a file was needed, a directory was named       (IsADirectoryError)
    │   ├── IsSameFile          source and target are one object
    │   ├── PathEscape          a path leads out of the operator's root
    │   ├── StatementInvalid    a COPY INTO that cannot be read
    │   └── CheckpointInvalid   a checkpoint that is damaged, foreign or too old
    ├── NotFound                object, bucket, table or load is not there     (FileNotFoundError)
    ├── AlreadyExists           it is there already                            (FileExistsError)
    ├── ConditionNotMatch       a condition was false: the world has changed
    │   └── FailedPrecondition  the source of a store copy is gone or replaced
    ├── PermissionDenied        credentials are wrong or do not reach so far   (PermissionError)
    ├── Unsupported             this service or path cannot do it              (NotImplementedError)
    │   └── MissingExtra        an optional part of calque is not installed    (ImportError)
    ├── ResourceExhausted       a quota, a limit, a full disk
    ├── IntegrityError          bytes, sizes or checksums disagree
    ├── DataError               rows or files that cannot be loaded as asked
    │   └── LoadAborted         a load was given up; its ``report`` says why
    ├── Aborted                 the work was stopped on purpose
    ├── Unavailable             the other side cannot answer now               (ConnectionError)
    │   ├── RateLimited         it asks us to slow down
    │   └── TimedOut            it took longer than it was given               (TimeoutError)
    └── Unexpected              a reply nobody planned for: please report it

A branch says what the caller can do. ``retryable`` says whether the same call may
succeed later. ``hint`` says what to do next and is shown below the message.
Every error pickles, so that it can cross from a Spark task to the driver.
"""

from __future__ import annotations

from typing import Any


class CalqueError(Exception):
    """The root of every error that calque raises on purpose."""

    retryable: bool = False
    surely_not_acted: bool = False
    """The other side certainly did nothing: even a call that is not idempotent may be repeated."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.retry_after = retry_after
        if retryable is not None:
            self.retryable = retryable

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.__dict__.copy())


def _rebuild(kind: type[CalqueError], message: str, state: dict[str, Any]) -> CalqueError:
    error = kind(message)
    error.__dict__.update(state)
    return error


class InvalidInput(CalqueError, ValueError):
    """The request is malformed; sending it again cannot help."""


class ConfigInvalid(InvalidInput):
    """A setting in calque.toml, the environment or a flag is wrong."""


class IsADirectory(InvalidInput, IsADirectoryError):
    """A file was needed and a directory (or an empty path) was named."""


class IsSameFile(InvalidInput):
    """Source and target are the same object; nothing was done."""


class PathEscape(InvalidInput):
    """A path leads out of the operator's root."""


class StatementInvalid(InvalidInput):
    """A statement that cannot be read or asks for contradictory things."""


class CheckpointInvalid(InvalidInput):
    """A checkpoint is damaged, belongs to another copy, or is too old."""


class NotFound(CalqueError, FileNotFoundError):
    """What was named does not exist."""


class AlreadyExists(CalqueError, FileExistsError):
    """What was to be made exists already."""


class ConditionNotMatch(CalqueError):
    """A condition on source or target was false; nothing was changed."""


class FailedPrecondition(ConditionNotMatch):
    """The source of a store operation is gone, replaced or expired since it began."""


class PermissionDenied(CalqueError, PermissionError):
    """Credentials are missing, wrong, or do not allow this."""


class Unsupported(CalqueError, NotImplementedError):
    """The service, or this path through it, cannot do what was asked."""


class MissingExtra(Unsupported, ImportError):
    """An optional part of calque is not installed."""

    @classmethod
    def of(cls, extra: str, why: str, *, or_else: str | None = None) -> MissingExtra:
        """The error for a missing extra: names it and the command that installs it.

        ``or_else``: another one that brings the same.
        """
        other = "" if or_else is None else f", or 'calque[{or_else}]'"
        return cls(
            f"{why} needs the extra {extra!r}, which is not installed",
            hint=f"Install it with: pip install 'calque[{extra}]'{other}",
        )


class ResourceExhausted(CalqueError):
    """A quota, a limit or a disk is full."""


class IntegrityError(CalqueError):
    """Bytes, sizes or checksums that should agree do not."""


class DataError(CalqueError):
    """Rows or files that cannot be loaded as asked."""


class LoadAborted(DataError):
    """A load was given up because of errors: nothing of it is in the table."""

    report: Any = None
    """The :class:`calque.loader.report.Report` that says which errors, file by file."""


class Aborted(CalqueError):
    """The work was stopped on purpose."""


class Unavailable(CalqueError, ConnectionError):
    """The other side cannot answer now; later it may."""

    retryable = True


class RateLimited(Unavailable):
    """The other side asks us to slow down, instead of doing what we asked."""

    surely_not_acted = True


class TimedOut(Unavailable, TimeoutError):
    """An answer took longer than it was given."""


class Unexpected(CalqueError):
    """A reply that no rule covers."""


def is_panic(error: BaseException) -> bool:
    """Whether a library of Rust gave up: what it raises then is no ``Exception`` of Python."""
    return type(error).__name__ == "PanicException"
