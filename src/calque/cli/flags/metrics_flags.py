"""The flags that say where a long run tells Prometheus how far it is, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calque.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from calque.cli.run_metrics import RunMetrics


@dataclass(frozen=True, slots=True)
class MetricsWanted:
    """Where numbers are asked for; nowhere, and nothing is imported or counted."""

    port: int | None = None
    file: Path | None = None
    push: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if self.push is not None and not self.push.startswith(("http://", "https://")):
            raise InvalidInput("--metrics-push needs the URL of a pushgateway: http://host:9091")
        if self.file is not None and not self.file.absolute().parent.is_dir():
            raise InvalidInput(
                f"--metrics-file cannot be written: {self.file.absolute().parent} is no folder",
                hint="Name a file in the folder that the textfile collector reads.",
            )
        if self.name is not None and not (self.name.isprintable() and 0 < len(self.name) <= 100):
            raise InvalidInput("--metrics-name has 1 to 100 printable characters")

    def refuse_single(self) -> None:
        """Raise where numbers of one object are asked for: it has none."""
        if self != NO_METRICS:
            raise InvalidInput(
                "--metrics-port, --metrics-file and --metrics-push are for trees, and this is one "
                "object",
                hint="With --recursive it is taken for a tree.",
            )

    @contextmanager
    def count_run(self, command: str) -> Iterator[RunMetrics | None]:
        """What a run of this command counts in; None where nobody asked."""
        if self.port is None and self.file is None and self.push is None:
            yield None
            return
        try:
            module = import_module("calque.cli.run_metrics")
        except ModuleNotFoundError as error:
            if error.name != "prometheus_client":
                raise
            raise MissingExtra.of("metrics", "Telling metrics") from error
        with module.run_metrics(self, command) as metrics:
            yield metrics


NO_METRICS = MetricsWanted()


def sheet_of_metrics(
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Answer Prometheus on this port of this machine while it runs."
        ),
    ] = None,
    metrics_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep numbers there, for node_exporter: run.prom."),
    ] = None,
    metrics_push: Annotated[
        str | None, typer.Option(metavar="URL", help="Push numbers to this pushgateway.")
    ] = None,
    metrics_name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What the run is called there; else the command."),
    ] = None,
) -> MetricsWanted:
    """Where numbers of the run go."""
    return MetricsWanted(metrics_port, metrics_file, metrics_push, metrics_name)
