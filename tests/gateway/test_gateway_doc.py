"""What docs/gateway.md shows is run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.gateway.world import World
from tests.store_client.test_store_commands import calque

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
    assert calque("store", "init", folder).returncode == 0
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    shown = [line[2:] for block in blocks for line in block.splitlines() if line[:1] == "$"]
    made, listed, revoked = (shlex.split(line)[1:] for line in shown if "s3-key" in line)
    assert calque(*(word.replace("./data", str(folder)) for word in made)).returncode == 0
    found = calque(*(word.replace("./data", str(folder)) for word in listed))
    fingerprint = found.stdout.decode().splitlines()[1][:8]
    words = [word.replace("./data", str(folder)) for word in revoked[:-1]]
    assert calque(*words, fingerprint).returncode == 0


def test_every_option_of_s3_is_told() -> None:
    """What `calque serve --help` says of S3 stands in the page too."""
    told = set(re.findall(r"--[a-z0-9-]+", PAGE))
    options = set(re.findall(r"--(?:no-)?s3[a-z-]*", calque("serve", "--help").stdout.decode()))
    assert options - {"--s3"} <= told
