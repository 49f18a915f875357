"""Settings: file, environment and flags become one checked value."""

import pickle
from pathlib import Path

import pytest

from calque.config import Secret, load_settings, mask_url
from calque.errors import ConfigInvalid


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str) -> Path:
    path = Path("calque.toml")
    path.write_text(text, encoding="utf-8")
    return path


def test_everything_works_without_a_file() -> None:
    """No file, no environment: defaults."""
    settings = load_settings(environ={"HOME": "."})
    assert (settings.tenant, settings.ledger.expire_days, settings.source) == ("default", 64, None)


def test_flags_win_over_environment_over_file() -> None:
    """The nearest word counts."""
    write('tenant = "file"\n[ledger]\nexpire_days = 1\nurl = "sqlite:///file.db"\n')
    environ = {"CALQUE_TENANT": "environment", "CALQUE_LEDGER_EXPIRE_DAYS": "2"}
    settings = load_settings(environ=environ, flags={"ledger.expire_days": 3, "tenant": None})
    assert (settings.tenant, settings.ledger.expire_days) == ("environment", 3)
    assert settings.ledger.url == Secret("sqlite:///file.db")


def test_large_things_have_names() -> None:
    """Stages, tables and stores are read by name, dots and unicode included."""
    write(
        '[stages.landing]\nlocation = "s3://landing/"\noptions = {region = "eu"}\n'
        '[tables."warehouse.verkäufe"]\nlocation = "./sales"\n'
        '[stores.archive]\nlocation = "grpc://h:1"\naccess = "grant"\n'
    )
    settings = load_settings(environ={"CALQUE_STORES_ARCHIVE_ACCESS": "other"})
    assert settings.stages["landing"].options == {"region": "eu"}
    assert settings.tables["warehouse.verkäufe"].format == "delta"
    assert settings.stores["archive"].access == Secret("other")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[ledger]\nexpire_day = 1", "Did you mean 'expire_days'"),
        ("[ledger]\nexpire_days = 0", "at least 1"),
        ('[ledger]\nexpire_days = "many"', "ledger.expire_days must be a whole number"),
        ("[ledger]\nexpire_days = true", "must be a whole number"),
        ("ledger = 3", "[ledger] must be a table"),
        ("[stages]\nlanding = 3", "must be a table"),
        ("[stages.landing]", "location"),
        ('[tables.a]\nformat = "csv"', "delta or iceberg"),
        ("tenant = ", "calque.toml cannot be read"),
        ('tenant = ""', "tenant must be a name"),
        ('tenant = "acme "', "no blanks around it"),
        ('tenant = "acme\\r"', "no control characters"),
    ],
)
def test_a_wrong_file_is_a_clear_error(text: str, said: str) -> None:
    """The message names the place and what would be right."""
    write(text)
    with pytest.raises(ConfigInvalid) as caught:
        load_settings(environ={})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        'ledger = "postgresql://me:hunter2@db/x"',
        '[stores]\narchive = "hunter2"',
        '[stores.archive]\nlocation = "x"\naccess = ["hunter2"]',
        '[ledger]\nurl = "postgresql://me:hunter2@db/x"\nurll = "hunter2"',
        '[ledger]\nexpire_days = "hunter2"',
        '[catalogs.c]\ntoken = ["hunter2"]',
        'tenant = "hunter2',
    ],
)
def test_a_wrong_file_tells_no_secret(text: str) -> None:
    """What stands in the wrong place may be one: its place is named, never its value."""
    write(text)
    with pytest.raises(ConfigInvalid) as caught:
        load_settings(environ={})
    assert "hunter2" not in str(caught.value)


def test_signatures_in_addresses_are_masked() -> None:
    """Shared-access links of Azure and signed ones of S3, whole or in parts."""
    for name in ("sig", "X-Amz-Signature", "token", "SharedAccessSignature"):
        assert "hunter2" not in mask_url(f"https://h/x?a=1&{name}=hunter2")
    assert mask_url("https://h/x?design=1") == "https://h/x?design=1"


def test_a_place_that_cannot_be_looked_at_has_no_file() -> None:
    """A home that is not ours, or is no place at all, has no settings; a named file is missing."""
    nowhere = "/" + "x" * 5000
    assert load_settings(environ={"XDG_CONFIG_HOME": nowhere}).spark.master is None
    with pytest.raises(ConfigInvalid, match="no configuration file"):
        load_settings(Path(nowhere))


def test_a_named_file_must_be_there() -> None:
    """A typo in --config does not silently mean 'no settings'."""
    with pytest.raises(ConfigInvalid, match="no configuration file"):
        load_settings(Path("nowhere.toml"), environ={})


def test_secrets_are_never_shown() -> None:
    """Not in a repr, not in a string, not in a pickle, not in a masked URL."""
    write('[ledger]\nurl = "postgresql://u:hunter2@h/db"\n')
    settings = load_settings(environ={})
    assert "hunter2" not in repr(settings) + str(settings.ledger.url)
    assert mask_url("postgresql://u:hunter2@h:5/db") == "postgresql://u:****@h:5/db"
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(settings.ledger.url)


def test_a_store_with_a_dot_in_its_name_takes_its_access_from_the_environment() -> None:
    """Names are names: a dot in one does not lead elsewhere."""
    write('[stores."a.b"]\nlocation = "grpc://h:1"\n')
    settings = load_settings(environ={"CALQUE_STORES_A.B_ACCESS": "grant"})
    assert settings.stores["a.b"].access == Secret("grant")


def test_the_environment_does_not_hide_a_section_that_is_none() -> None:
    """A section of the wrong kind is told, also where a variable would go into it."""
    write("ledger = 3\n")
    with pytest.raises(ConfigInvalid, match="must be a table"):
        load_settings(environ={"CALQUE_LEDGER_URL": "x.db"})


def test_secrets_in_the_query_of_a_url_are_masked() -> None:
    """Databases take a password there as well; the rest of the URL stays as it was."""
    assert mask_url("postgresql://h/db?password=p&sslmode=x") == (
        "postgresql://h/db?password=****&sslmode=x"
    )
    assert mask_url("s3://bucket/a?region=eu") == "s3://bucket/a?region=eu"
    assert mask_url("./a folder/ledger.db") == "./a folder/ledger.db"
    assert mask_url("http://[half") == "****"
