"""Errors of Spark jobs in our own words: what a task or an expression raised, found by its text.

The JVM hands over text alone, whatever was raised in an executor: so the text is searched, first
for an error of ours, then for what happens to worker processes, then for Spark's named conditions.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager

from calque import errors
from calque.errors import CalqueError, ConfigInvalid, DataError, StatementInvalid, Unavailable
from calque.spark.errors import map_errors, translate_error

_RAISED = re.compile(r"calque\.(?:[a-z_]+\.)*(\w+): (.*)")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\] (.*)")
_STATE = re.compile(r"SQLSTATE: (\w{5})")
_TASK = re.compile(r"Task (\d+) in stage")
_LACKING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_PRINTED = "'s standard output. Invalid port number"
_DAEMON_GONE = "ProcessBuilder$NullOutputStream"
"""Where Java writes to when the process that forks Spark's workers has ended."""
_NO_DAEMON = "occurred while reading the port number"
_BAD_EXPRESSION = (
    "CAST_INVALID_INPUT",
    "DIVIDE_BY_ZERO",
    "ARITHMETIC_OVERFLOW",
    "CAST_OVERFLOW",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "INVALID_ARRAY_INDEX",
    "INVALID_FORMAT.MISMATCH_INPUT",
)
_BAD_SELECT = ("PARSE_SYNTAX_ERROR", "UNRESOLVED", "DATATYPE_MISMATCH", "AMBIGUOUS_REFERENCE")


class ExpressionFailed(DataError):
    """An expression of a SELECT cannot be evaluated on some row.

    ``reason`` is what Spark says of it; ``task`` the number of the task that met the row.
    """

    reason: str = ""
    task: int | None = None


def map_job_errors() -> AbstractContextManager[None]:
    """Raise what a Spark job raised as an error of calque."""
    return map_errors(translate_job_error)


def translate_job_error(error: Exception) -> CalqueError:
    """The error of a Spark job, by what its text says of the cause."""
    text = str(error)
    raised = _RAISED.search(text)
    kind = getattr(errors, raised.group(1), None) if raised else None
    if raised and isinstance(kind, type) and issubclass(kind, CalqueError):
        return kind(raised.group(2).strip(), hint="It was raised inside a Spark task.")
    worker = _worker_error(text)
    if worker is not None:
        return worker
    condition = _CONDITION.search(text)
    if condition is not None:
        found = _condition_error(condition.group(1), condition.group(2), text)
        if found is not None:
            return found
    return translate_error(error)


def _worker_error(text: str) -> CalqueError | None:
    """What went wrong with the processes that run tasks, whatever they ran."""
    lacking = _LACKING.search(text)
    if lacking is not None:
        return ConfigInvalid(
            f"the Python of the Spark executors has no {lacking.group(1).partition('.')[0]!r}",
            hint="Install calque there, in the version of the driver, or name a Python that has "
            "it: PYSPARK_PYTHON.",
        )
    if "PYTHON_VERSION_MISMATCH" in text:
        return ConfigInvalid(
            "the Spark executors run another Python than the driver",
            hint="Name one by PYSPARK_PYTHON that is the same in both places.",
        )
    absent = _NO_PROGRAM.search(text)
    if absent is not None:
        return ConfigInvalid(
            f"the Spark executors cannot run {absent.group(1)!r}",
            hint="Name a Python by PYSPARK_PYTHON that is there on every one of them.",
        )
    if _DAEMON_GONE in text:
        return Unavailable(
            "the process that starts Spark's Python workers was killed",
            hint="Nothing was loaded. The next statement has one again.",
        )
    if _NO_DAEMON in text:
        return Unavailable(
            "the process that starts Spark's Python workers ended as it began",
            hint="Its messages are in Spark's log: often memory has run out. Nothing was loaded.",
        )
    if _PRINTED in text:
        return ConfigInvalid(
            "the Python of the Spark executors prints when it starts, where Spark waits for a port",
            hint="Let what it runs by itself (sitecustomize.py, a .pth file) print to standard "
            "error, or name another Python by PYSPARK_PYTHON.",
        )
    if "Python worker exited unexpectedly" in text or "ExecutorLostFailure" in text:
        return Unavailable(
            "a worker process of Spark was killed in the middle of a task, as often as Spark tries",
            hint="Often memory has run out: give executors more, or fewer tasks at a time. "
            "Nothing was loaded.",
        )
    return None


def _condition_error(name: str, message: str, text: str) -> CalqueError | None:
    state = _STATE.search(text)
    told = _STATE.sub("", message).strip()
    # Class 22 of SQL states are values that an expression cannot take.
    if name.startswith(_BAD_EXPRESSION) or (state and state.group(1).startswith("22")):
        failed = ExpressionFailed(
            f"an expression of the SELECT failed: {told} [{name}]",
            hint="Nothing was loaded. try_cast and try_divide give NULL instead of failing.",
        )
        task = _TASK.search(text)
        failed.reason, failed.task = f"{told} [{name}]", int(task.group(1)) if task else None
        return failed
    # Class 42 are expressions that no row could make right.
    if name.startswith(_BAD_SELECT) or (state and state.group(1).startswith("42")):
        return StatementInvalid(f"Spark cannot read the SELECT: {told} [{name}]")
    return None
