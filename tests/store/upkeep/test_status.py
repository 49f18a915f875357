"""What needs somebody is a line of the doctor and an exit code."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from calque.cli.main import app
from calque.store.upkeep.repair import RepairOptions, repair_store
from calque.store.upkeep.status import read_status
from tests.store.upkeep.kept_store import KeptStore


def test_the_doctor_says_what_is_lost(plain: KeptStore) -> None:
    """Well, then lost: by the configuration, by the folder, and by the exit code of repair."""
    plain.upload("a", 900)
    folder = plain.store.folder
    done = CliRunner().invoke(app, ["doctor", str(folder), "--json"])
    assert (done.exit_code, json.loads(done.stdout)[0]["ok"]) == (0, True)
    for number in range(6):
        plain.lose_node(number)
    done = CliRunner().invoke(app, ["store", "repair", str(folder), "--gone-after", "0", "--json"])
    assert (done.exit_code, json.loads(done.stdout)["lost_objects"]) == (1, 1)
    assert read_status(folder).lost_segments == 1
    config = folder.parent / "calque.toml"
    config.write_text(f'[stores.films]\nlocation = "{folder}"\n')
    done = CliRunner().invoke(app, ["doctor", "--config", str(config), "--json"])
    told = {each["name"]: each for each in json.loads(done.stdout)}["upkeep of films"]
    assert (done.exit_code, told["ok"]) == (1, False)
    assert "1 segment of 1 object lost" in told["found"]
    assert "bring a lost node back" in told["advice"]


def test_silent_nodes_and_waiting_repairs_are_told(plain: KeptStore) -> None:
    """Not as a loss, but as something to do."""
    plain.upload("a", 900)
    plain.lose_node(0)
    repair_store(plain.store, RepairOptions())
    status = read_status(plain.store.folder)
    assert status.problems == ["1 node not answering"]
    assert status.advice == "calque store repair"
