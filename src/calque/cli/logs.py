"""What is said on standard error while a command runs: lines for people, or JSON for collectors."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from enum import StrEnum


class LogForm(StrEnum):
    """How lines of the log are written."""

    TEXT = "text"
    JSON = "json"


class JsonLines(logging.Formatter):
    """One JSON object a line, in ASCII: whatever a server or a name holds, it stays one line."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, object] = {
            "time": moment_of(record),
            "level": record.levelname,
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told)


class TimedLines(logging.Formatter):
    """Lines for people, with the time in front."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{moment_of(record)} {super().format(record)}"


def moment_of(record: logging.LogRecord) -> str:
    """When it happened, in UTC to the millisecond."""
    when = datetime.fromtimestamp(record.created, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def set_up_logs(verbose: bool, form: LogForm | None) -> None:
    """Errors are told; warnings too where a form was asked for; everything with ``verbose``."""
    plain = "%(levelname)s %(name)s: %(message)s"
    level = logging.INFO if verbose else logging.ERROR if form is None else logging.WARNING
    # The debug lines of SDKs hold headers and signed URLs; ours do not.
    logging.basicConfig(level=level, format=plain)
    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_no_stop)
    logging.getLogger("calque").setLevel(logging.DEBUG if verbose else logging.NOTSET)
    if form is not None:
        formatter = JsonLines() if form is LogForm.JSON else TimedLines(plain)
        for handler in logging.getLogger().handlers:
            handler.setFormatter(formatter)


def _is_no_stop(record: logging.LogRecord) -> bool:
    """Not what a library logs of Ctrl-C, with a traceback, before it lets it through: that is told
    by who ends."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, (KeyboardInterrupt, SystemExit))


def log_as_json(line: str, level: int = logging.INFO) -> bool:
    """Log a line meant for people where the log is JSON; whether it was.

    Nothing else may then stand on standard error, or who reads it line by line breaks.
    """
    handlers = [
        each for each in logging.getLogger().handlers if isinstance(each.formatter, JsonLines)
    ]
    record = logging.LogRecord("calque.cli", level, __file__, 0, line, None, None)
    for handler in handlers:
        handler.handle(record)
    return bool(handlers)
