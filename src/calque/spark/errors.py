"""Errors of pyspark, Py4J and the JVM in our own words: one place where they end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from calque.errors import CalqueError, ConfigInvalid, ResourceExhausted, Unavailable, Unexpected

_CAUSE = re.compile(r"^: (?:[\w$]+\.)+([\w$]+): (.*)$", re.MULTILINE)
"""Py4J writes the Java exception below its own first line, which only names a call."""
_STOPPED = (
    "stopped SparkContext",
    "SparkContext was shut down",
    "SparkContext has been shutdown",
    "'NoneType' object has no attribute",  # what pyspark is left with after stop()
)
_NO_MASTER = ("Could not parse Master URL", "Invalid master URL", "MASTER_URL")
_UNREACHED = ("All masters are unresponsive", "Connection refused", "UnknownHostException")


def is_spark_error(error: BaseException) -> bool:
    """Whether pyspark or Py4J raised it, or fell over their own remains after an end."""
    if type(error).__module__.startswith(("pyspark", "py4j")):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    home = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    return home.startswith(("pyspark.", "py4j."))


@contextmanager
def map_errors(
    translate: Callable[[Exception], CalqueError] | None = None,
) -> Iterator[None]:
    """Raise what Spark raised as an error of calque; ``translate`` says as which."""
    try:
        yield
    except CalqueError:
        raise
    except Exception as error:
        if not is_spark_error(error):
            raise
        raise (translate or translate_error)(error) from error


def translate_error(error: Exception) -> CalqueError:
    """The error by what its text says of the cause."""
    text = str(error)
    if any(sign in text for sign in _STOPPED):
        return Unavailable(
            "the Spark session is stopped",
            hint="Give a session that runs, or leave spark= out to have one started.",
        )
    if any(sign in text for sign in _NO_MASTER):
        return ConfigInvalid(f"Spark has no such master: {cause_of(text)}")
    if isinstance(error, OSError) or type(error).__name__ in ("Py4JNetworkError", "Py4JError"):
        return Unavailable("the Spark driver's JVM does not answer: it may have been killed")
    if any(sign in text for sign in _UNREACHED):
        return Unavailable(f"the Spark cluster cannot be reached: {cause_of(text)}")
    if "java.lang.OutOfMemoryError" in text:
        return ResourceExhausted(
            f"Spark's JVM has run out of memory: {cause_of(text)}",
            hint="Give it more by [spark] memory.",
        )
    return Unexpected(f"Spark failed: {cause_of(text)}")


def cause_of(text: str) -> str:
    """What a Java exception says, without the frames behind and Py4J's line before."""
    cause = _CAUSE.search(text)
    if cause is not None:
        return f"{cause.group(2).strip()} [{cause.group(1)}]"
    return text.strip().partition("\n")[0]
