"""``calque doctor``: what is installed, what is missing, what to do about it."""

from __future__ import annotations

import platform
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated

import typer

from calque._version import __version__
from calque.cli.locations import Location, Options
from calque.cli.output import FAILED, JsonFlag, as_json, say, table
from calque.errors import CalqueError, Unsupported

app = typer.Typer(add_completion=False)

SERVICES = {
    "file": None,
    "memory": None,
    "s3": "s3",
    "gs": "gcs",
    "az": "azure",
    "calque": "store",
}
"""Scheme → the extra it needs."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. ``advice`` says what to do, empty where all is well."""

    name: str
    ok: bool
    found: str
    advice: str = ""


@app.command()
def doctor(
    uri: Annotated[
        str | None,
        typer.Argument(metavar="[LOCATION]", help="A server to try out: s3://bucket/prefix."),
    ] = None,
    prepare_spark: Annotated[
        bool,
        typer.Option("--prepare", help="Make the class cache that lets Spark start faster."),
    ] = False,
    config: Annotated[Path | None, typer.Option(help="The configuration file to check.")] = None,
    option: Options = None,
    json: JsonFlag = False,
) -> None:
    """Say what is installed, which JVM and Spark would be used, and what to do about the rest.

    Nothing is started and nothing is changed, unless --prepare asks for it.

    With a location it tries out the server there, on keys of its own that it removes again (one of
    them holds 5 MiB), and prints the options that the server needs. With the folder of a store it
    says how the store is. Exit code 1 when a store has lost something or needs repair.

    Examples:

      calque doctor s3://bucket/prefix -o endpoint_url=http://localhost:9000

      calque doctor ./data

      calque doctor

      calque doctor --json | jq '.[] | select(.ok | not)'

      calque doctor --prepare
    """
    from calque.spark.session import prepare

    if uri is not None and (Path(uri) / "store.json").is_file():
        _print([*_store(uri, Path(uri))], json=json)
        return
    if uri is not None:
        _probe_server(Location.of(uri, option), json=json)
        return
    if prepare_spark:
        made = prepare()
        say(f"class cache: {made}" if made else "class cache: this JVM cannot keep one")
    findings = [*_basics(), *_extras(), *_services(), *_spark(), *_configuration(config)]
    _print(findings, json=json)


def _print(findings: list[Finding], *, json: bool) -> None:
    if json:
        as_json(findings)
    else:
        rows = [("ok" if f.ok else "—", f.name, f.found, f.advice) for f in findings]
        table(["", "what", "found", "what to do"], rows)
    # What is not installed is no failure; a store that needs somebody is.
    if any(not each.ok and each.name.startswith("upkeep of ") for each in findings):
        raise typer.Exit(FAILED)


def _probe_server(location: Location, *, json: bool) -> None:
    """What the server there does, and the options that say so."""
    from calque.operator.service import Probing

    service = location.operator.service
    if not isinstance(service, Probing):
        raise Unsupported(
            f"{service.scheme}:// has one kind of server, so there is nothing to find out",
            hint="What it can do stands in its page of the documentation.",
        )
    found = list(service.probe(location.path))
    options = [probe.option for probe in found if probe.option]
    if json:
        as_json({"findings": found, "options": options})
        return
    rows = [("ok" if f.ok else "—", f.name, f.found, f.option) for f in found]
    table(["", "what", "found", "option to set"], rows)
    say(
        f"set: {shlex.join(w for o in options for w in ('-o', o))}" if options else "nothing to set"
    )


def _basics() -> Iterator[Finding]:
    yield Finding("calque", True, __version__)
    yield Finding("python", True, f"{platform.python_version()} at {sys.executable}")


def _extras() -> Iterator[Finding]:
    """Each extra with the packages that it brings, as the installed metadata lists them."""
    wanted: dict[str, list[str]] = {}
    for line in requires("calque") or []:
        found = re.match(r"([A-Za-z0-9._-]+).*extra == ['\"]([\w-]+)['\"]", line)
        if found and found[1] != "calque" and found[2] != "all":
            wanted.setdefault(found[2], []).append(found[1])
    for extra, packages in wanted.items():
        there = {package: _version(package) for package in packages}
        missing = [package for package, known in there.items() if known is None]
        yield Finding(
            f"extra {extra}",
            not missing,
            ", ".join(f"{package} {known}" for package, known in there.items() if known),
            f"pip install 'calque[{extra}]'" if missing else "",
        )


def _services() -> Iterator[Finding]:
    ready = {f.name.removeprefix("extra "): f.ok for f in _extras()}
    for scheme, extra in SERVICES.items():
        ok = extra is None or ready.get(extra, False)
        advice = "" if ok else f"pip install 'calque[{extra}]'"
        yield Finding(f"service {scheme}://", ok, "ready" if ok else "not installed", advice)


def _spark() -> Iterator[Finding]:
    from calque.spark import class_cache
    from calque.spark.gateway import java_command
    from calque.spark.java import find_jvm

    spark = _version("pyspark")
    advice = "" if spark else "pip install 'calque[spark]'"
    yield Finding("spark", spark is not None, spark or "not installed", advice)
    try:
        jvm = find_jvm()
    except CalqueError as error:
        yield Finding("java", False, "none", str(error.hint))
        return
    yield Finding("java", True, f"{jvm.version} at {jvm.home} ({jvm.reason})")
    if spark is None:
        return
    cache = class_cache.cache_path(jvm, java_command(jvm))
    if cache is None:
        yield Finding("spark class cache", True, "this JVM keeps none", "")
    else:
        ready = cache.is_file()
        advice = (
            "" if ready else "calque doctor --prepare (Spark then starts in a third of the time)"
        )
        yield Finding("spark class cache", ready, str(cache) if ready else "not made yet", advice)


def _configuration(path: Path | None) -> Iterator[Finding]:
    from calque.config import load_settings, mask_url, state_folder

    try:
        settings = load_settings(path)
    except CalqueError as error:
        yield Finding("configuration", False, error.message, error.hint or "Correct the file.")
        return
    yield Finding("configuration", True, str(settings.source or "defaults, no calque.toml"))
    url = settings.ledger.url
    yield Finding("ledger", True, mask_url(url.reveal()) if url else f"SQLite in {state_folder()}")
    for kind, named in (
        ("stage", settings.stages),
        ("table", settings.tables),
        ("store", settings.stores),
        ("remote", settings.remotes),
    ):
        for name, item in named.items():
            yield Finding(f"{kind} {name}", True, mask_url(item.location or ""))
            if kind == "store" and (Path(item.location or "") / "store.json").is_file():
                yield from _store(name, Path(str(item.location)))


def _store(name: str, folder: Path) -> Iterator[Finding]:
    """How a store is, by what its services found last."""
    try:
        from calque.store.upkeep.status import read_status

        status = read_status(folder.absolute())
    except (CalqueError, ImportError) as error:
        yield Finding(f"upkeep of {name}", False, str(error), "calque store fsck")
        return
    if not status.is_current:
        yield Finding(f"upkeep of {name}", True, "made by an earlier release; not opened yet")
        return
    nodes = ", ".join(f"{count} {state}" for state, count in sorted(status.nodes.items()))
    found = "; ".join(status.problems) or f"well; nodes: {nodes}"
    yield Finding(f"upkeep of {name}", not status.problems, found, status.advice)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
