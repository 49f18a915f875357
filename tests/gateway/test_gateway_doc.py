"""What docs/gateway.md shows is run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from calque.cli.commands.serve import app as serve_app
from calque.store.embedded import EmbeddedStore
from tests.gateway.test_commands import store
from tests.gateway.world import World

PAGE = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text(encoding="utf-8")


def test_the_python_of_the_page(world: World) -> None:
    """The client that the page makes puts and copies."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {
        "endpoint": world.url,
        "access_key_id": world.key.access_key_id,
        "secret_access_key": world.key.secret_access_key,
    }
    exec(code, names)
    assert world.project.download("photos", "best/a.jpg").read() == b"..."


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    """Keys are made, listed and revoked as the page shows."""
    folder = tmp_path / "data"
    EmbeddedStore.create(folder).close()
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    shown = [line[2:] for block in blocks for line in block.splitlines() if line[:1] == "$"]
    made, listed, revoked = (
        [word.replace("./data", str(folder)) for word in shlex.split(line)[2:]]
        for line in shown
        if "s3-key" in line
    )
    assert store(*made).exit_code == 0
    fingerprint = store(*listed).stdout.splitlines()[1][:8]
    assert store(*revoked[:-1], fingerprint).exit_code == 0


def test_every_option_of_s3_is_told() -> None:
    """What `calque serve --help` says of S3 stands in the page too."""
    told = set(re.findall(r"--[a-z0-9-]+", PAGE))
    shown = CliRunner().invoke(serve_app, ["--help"]).stdout
    options = set(re.findall(r"--(?:no-)?s3[a-z-]*", shown))
    assert "--s3-port" in options
    assert options - {"--s3"} <= told
