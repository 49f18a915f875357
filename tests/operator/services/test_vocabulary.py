"""Know one service, know all: the same thing is in a file of the same name everywhere."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from calque.operator import services

VERBS = frozenset({"stat", "list", "read", "write", "delete", "copy", "leftovers"})
COMMON = VERBS | {"builder", "config", "service", "errors"}
CLOUD = frozenset({"client", "credentials", "presign", "marker", "parted_write"})
"""What there is besides where a server is asked by somebody who must prove it; a write whose parts
are kept has its place on file systems too."""

VOCABULARY = {
    "azblob": COMMON | CLOUD,
    "fs": COMMON | {"marker", "parted_write"},
    "gcs": COMMON | CLOUD,
    "memory": COMMON | {"client"},
    "s3": COMMON | CLOUD,
}


def modules_of(service: str) -> set[str]:
    """The files of a service, by name."""
    folder = Path(services.__path__[0]) / service
    return {file.stem for file in folder.glob("*.py")} - {"__init__"}


def test_every_service_is_held_to_it() -> None:
    """A new service takes its place in the table above."""
    folder = Path(services.__path__[0])
    assert {file.parent.name for file in folder.glob("*/builder.py")} == set(VOCABULARY)


@pytest.mark.parametrize("service", sorted(VOCABULARY))
def test_the_names_are_the_same_everywhere(service: str) -> None:
    """Each service has every file of the common vocabulary, under that name."""
    assert VOCABULARY[service] - modules_of(service) == set()


@pytest.mark.parametrize("service", sorted(VOCABULARY))
def test_what_is_its_own_is_told(service: str) -> None:
    """A file that other services do not have is named in the docstring of the package."""
    told = import_module(f"calque.operator.services.{service}").__doc__ or ""
    own = modules_of(service) - COMMON - CLOUD
    assert {name for name in own if not re.search(rf"\b{name}\b", told)} == set()


@pytest.mark.parametrize("service", sorted(VOCABULARY))
def test_a_service_is_thin(service: str) -> None:
    """``service.py`` hands each verb on to the file of its name."""
    text = (Path(services.__path__[0]) / service / "service.py").read_text()
    package = re.escape(f"calque.operator.services.{service}")
    handed_on = set(re.findall(rf"from {package}(?:\.| import )(\w+)", text))
    assert VERBS - handed_on == set()


def test_the_vocabulary_is_documented() -> None:
    """The docstring of ``calque.operator.services`` names each file and each shared module."""
    told = services.__doc__ or ""
    shared = {file.stem for file in Path(services.__path__[0]).glob("*.py")} - {"__init__"}
    names = COMMON | CLOUD | shared
    assert {name for name in names if f"{name}.py" not in told} == set()
