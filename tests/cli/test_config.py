"""``calque config``: what is in force, from where, and no secret of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Calque

FILE = """
tenant = "acme"

[ledger]
url = "postgresql://loader:hunter2@db/calque?password=hunter2&sslmode=require"

[spark.settings]
"spark.hadoop.fs.s3a.secret.key" = "hunter2"
"spark.executor.memory" = "4g"

[stages."in.coming"]
location = "s3://landing/"
options = { credentials = "vault:keys", access_key_id = "hunter2" }

[stores."far.away"]
location = "grpc://store:7777"
access = "hunter2"

[catalogs.prod]
uri = "https://me:hunter2@catalog"
token = "hunter2"
"""


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CALQUE_TENANT", "CALQUE_LEDGER_URL", "CALQUE_CONFIG", "CALQUE_PROJECT"):
        monkeypatch.delenv(name, raising=False)


def settings_of(text: str) -> dict[str, tuple[object, str]]:
    return {row["name"]: (row["value"], row["from"]) for row in json.loads(text)["settings"]}


def test_without_a_file_all_are_defaults(
    calque_here: Calque, environment: dict[str, str], folder: Path
) -> None:
    """Every key of the fixed sections stands there with its default."""
    environment["XDG_CONFIG_HOME"] = str(folder)
    told = calque_here("config", "--json").stdout
    assert json.loads(told)["file"] is None
    assert settings_of(told)["ledger.expire_days"] == (64, "default")
    assert settings_of(told)["spark.master"] == (None, "default")


def test_each_value_says_where_it_came_from(
    calque_here: Calque, environment: dict[str, str], folder: Path
) -> None:
    """The file, a variable by its name, or a default; the nearest word is shown."""
    (folder / "calque.toml").write_text(FILE)
    environment["CALQUE_TENANT"] = "nearer"
    environment["CALQUE_LEDGER_EXPIRE_DAYS"] = "7"
    environment["CALQUE_STORES_FAR.AWAY_ACCESS"] = "hunter2"
    environment["CALQUE_PROJECT"] = "./data"
    found = settings_of(calque_here("config", "--json").stdout)
    assert found["tenant"] == ("nearer", "CALQUE_TENANT")
    assert found["ledger.expire_days"] == (7, "CALQUE_LEDGER_EXPIRE_DAYS")
    assert found['stores."far.away".access'] == ("****", "CALQUE_STORES_FAR.AWAY_ACCESS")
    assert found['stages."in.coming".location'] == ("s3://landing/", "calque.toml")
    assert found['spark.settings."spark.executor.memory"'] == ("4g", "calque.toml")
    assert found["spark.memory"] == ("768m", "default")
    assert found["CALQUE_PROJECT"] == ("./data", "environment")


def test_no_secret_is_shown(calque_here: Calque, environment: dict[str, str], folder: Path) -> None:
    """Not of the file, not of the environment; neither in the table nor as JSON."""
    (folder / "calque.toml").write_text(FILE)
    environment["CALQUE_ACCESS"] = environment["CALQUE_S3_SECRET_ACCESS_KEY"] = "hunter2"
    for flags in ((), ("--json",)):
        done = calque_here("config", *flags)
        assert done.returncode == 0, done.stderr
        assert "hunter2" not in done.stdout + done.stderr
        assert "****@db/calque" in done.stdout
        assert "vault:keys" in done.stdout
        assert "sslmode=require" in done.stdout


def test_a_wrong_file_is_told(calque_here: Calque, folder: Path) -> None:
    """As every command tells it: exit code 2, the place and the name that was meant."""
    (folder / "calque.toml").write_text("[ledger]\nexpire_day = 1\n")
    done = calque_here("config", "--json")
    assert done.returncode == 2
    assert "expire_days" in json.loads(done.stdout)["error"]["hint"]
