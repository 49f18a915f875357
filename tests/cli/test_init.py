"""``calque init``: a file that says everything and sets nothing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from calque.cli.settings_file import NAME, list_keys, render_settings_file
from calque.config import Settings, load_settings
from tests.cli.conftest import Calque


def switched_on() -> str:
    """The file with every setting in it switched on."""
    return re.sub(r"^#(?! )", "", render_settings_file(), flags=re.MULTILINE)


def test_what_is_written_is_read_back_and_means_the_defaults(
    calque_here: Calque, folder: Path
) -> None:
    """The file alone changes nothing; the file says where it lies."""
    done = calque_here("init")
    assert done.returncode == 0, done.stderr
    settings = load_settings(folder / "calque.toml", environ={})
    assert settings.source == folder / "calque.toml"
    object.__setattr__(settings, "source", None)
    assert settings == Settings()
    assert (folder / "calque.toml").stat().st_mode & 0o077 == 0


def test_every_key_of_the_settings_is_in_the_file(folder: Path) -> None:
    """A key that is added to the settings is added to the file, with words, or this fails."""
    written = tomllib.loads(switched_on())
    text = render_settings_file()
    names = [key.name for key in list_keys()]
    assert {"tenant", "ledger.url", f"stages.{NAME}.location", f"formats.{NAME}"} <= set(names)
    for key in list_keys():
        here: object = written
        for part in key.name.split("."):
            assert isinstance(here, dict), key.name
            here = next(iter(here.values())) if part == NAME else here.get(part)
        assert here not in (None, {}), f"{key.name} is not in what `calque init` writes"
        assert key.meaning, f"{key.name} has no words in config.py"
        assert f"# {key.meaning}" in text


def test_every_field_of_the_settings_is_a_key() -> None:
    """The walk over the settings leaves out nothing but the file's own name."""
    tops = {key.name.split(".")[0] for key in list_keys()}
    assert tops == set(Settings.__dataclass_fields__) - {"source"}


def test_every_example_is_right(folder: Path) -> None:
    """Each setting that is shown can be switched on, and shown defaults are the defaults."""
    path = folder / "calque.toml"
    path.write_text(switched_on(), encoding="utf-8")
    settings = load_settings(path, environ={})
    assert settings.tables["warehouse.sales"].catalog == "prod"
    assert (settings.tenant, settings.ledger.expire_days) == ("default", 64)
    assert settings.spark.memory == Settings().spark.memory


def test_a_file_that_is_there_is_kept(calque_here: Calque, folder: Path) -> None:
    """Nothing is written over without --force; with it the file is replaced and nothing is left."""
    path = folder / "calque.toml"
    path.write_text('tenant = "acme"\n')
    refused = calque_here("init")
    assert refused.returncode == 1
    assert "--force" in refused.stderr
    assert path.read_text() == 'tenant = "acme"\n'
    assert calque_here("init", "--force").returncode == 0
    assert path.read_text() == render_settings_file()
    assert [one.name for one in folder.iterdir()] == ["calque.toml"]


@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize(("name", "said"), [(".", "folder"), ("missing/x.toml", "no folder")])
def test_a_place_that_cannot_be_written_is_named(
    calque_here: Calque, folder: Path, name: str, said: str, force: tuple[str, ...]
) -> None:
    """A folder, or a folder that is not there, is a clear error and leaves nothing."""
    done = calque_here("init", name, *force)
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    assert list(folder.iterdir()) == []


def test_standard_output(calque_here: Calque, folder: Path) -> None:
    """``-`` writes it there and no file."""
    assert calque_here("init", "-").stdout == render_settings_file()
    assert list(folder.iterdir()) == []
