"""Errors of Spark in our own words: what was raised inside a task is found again by its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from calque import errors
from calque.errors import CalqueError, DataError, Unavailable, Unexpected

_RAISED = re.compile(r"calque\.errors\.(\w+): (.*)")
_CONDITION = re.compile(r"\[([A-Z_]+(?:\.[A-Z_]+)*)\] (.*)")
_BAD_EXPRESSION = (
    "CAST_INVALID_INPUT",
    "DIVIDE_BY_ZERO",
    "ARITHMETIC_OVERFLOW",
    "CAST_OVERFLOW",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "INVALID_ARRAY_INDEX",
)


_TASK = re.compile(r"Task (\d+) in stage")


class ExpressionFailed(DataError):
    """An expression of a SELECT cannot be evaluated on some row.

    ``reason`` is what Spark says of it; ``task`` the number of the task that met the row.
    """

    reason: str = ""
    task: int | None = None


@contextmanager
def mapped() -> Iterator[None]:
    """Raise what a job raised as an error of calque."""
    try:
        yield
    except CalqueError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        raise translate(error) from error


def translate(error: Exception) -> CalqueError:
    """The error of a Spark job, by what its text says of the cause."""
    text = str(error)
    raised = _RAISED.search(text)
    kind = getattr(errors, raised.group(1), None) if raised else None
    if raised and isinstance(kind, type) and issubclass(kind, CalqueError):
        return kind(raised.group(2).strip(), hint="It was raised inside a Spark task.")
    condition = _CONDITION.search(text)
    if condition is not None:
        task = _TASK.search(text)
        return _of_condition(
            condition.group(1), condition.group(2), int(task.group(1)) if task else None
        )
    if type(error).__name__ in ("Py4JNetworkError", "Py4JError"):
        return Unavailable("the Spark driver's JVM does not answer: it may have been killed")
    return Unexpected(f"Spark failed: {text.strip().partition(chr(10))[0]}")


def _of_condition(name: str, message: str, task: int | None) -> CalqueError:
    if name.startswith(_BAD_EXPRESSION):
        failed = ExpressionFailed(
            f"an expression of the SELECT failed: {message} [{name}]",
            hint="Nothing was loaded. try_cast and try_divide give NULL instead of failing.",
        )
        failed.reason, failed.task = f"{message} [{name}]", task
        return failed
    if name.startswith(("PARSE_SYNTAX_ERROR", "UNRESOLVED", "DATATYPE_MISMATCH")):
        return errors.StatementInvalid(f"Spark cannot read the SELECT: {message} [{name}]")
    return Unexpected(f"Spark failed: {message} [{name}]")
