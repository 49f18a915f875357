"""Pages of the ledger, over HTTP: loads, files, errors, jobs; and a ledger not yet made."""

from __future__ import annotations

from pathlib import Path

import requests

from calque.console.ledger_pages.section import ledger_section
from calque.console.server import serve_console
from calque.console.site import Site
from calque.ledger import open_ledger
from tests.console.world import SCRIPT, Visitor, World
from tests.servers.postgres import PostgresServer


def test_the_history_of_a_table(visitor: Visitor) -> None:
    """Both loads, newest first, and the sums of the table; the command that shows the same."""
    told = visitor.json("/loads")
    (table,) = told["tables"]
    assert (table["loads"], table["rows"]) == (2, 3)
    of_table = visitor.json(f"/loads?table={table['number']}")
    assert [(each["rows"], each["errors"]) for each in of_table["loads"]] == [(1, 1), (2, 0)]
    assert of_table["command"] == f"calque history {table['table']}"
    (_, rejected) = of_table["charts"]
    assert rejected["points"][-1][1] == 1
    assert visitor.get("/loads?table=999").status_code == 404
    assert visitor.get("/loads?table=x%00").status_code == 400


def test_a_load_tells_file_line_and_column_of_its_first_error(visitor: Visitor) -> None:
    """And the statement as a command to run again; names are text, whatever they hold."""
    load = visitor.json("/loads")["loads"][0]
    told = visitor.json(f"/load?id={load['load_id']}")
    (error,) = told["errors"]
    assert (error["line"], error["column"], error["value"]) == (3, "amount", "<b>no</b>")
    assert told["load"]["retry"].startswith("calque sql ")
    assert told["command"] == f"calque errors {load['load_id']}"
    html = visitor.get(f"/load?id={load['load_id']}").text
    assert "&lt;b&gt;no&lt;/b&gt;" in html
    assert "<b>no" not in html
    missing = visitor.get(f"/load?id={SCRIPT}")
    assert missing.status_code == 404
    assert SCRIPT not in missing.text


def test_jobs_and_how_to_go_on_with_them(visitor: Visitor) -> None:
    """One is over; one was left by a process that died: its command is shown, and it can be
    forgotten by one who may."""
    jobs = visitor.json("/jobs")["jobs"]
    left = next(each for each in jobs if each["job"].endswith("-left"))
    assert left["state"] == "DIED"
    assert left["resume"] == f"calque jobs resume {left['job']}"
    done = next(each for each in jobs if each["state"] == "DONE" and each["copied"])
    assert done["resume"] is None
    told = visitor.json(f"/job?id={left['job']}")
    assert told["ranges_left"] == 1
    assert SCRIPT not in visitor.get(f"/job?id={left['job']}").text
    assert visitor.get("/job?id=nonsense").status_code == 404


def test_a_job_is_forgotten(visitor: Visitor, world: World) -> None:
    """It is gone from the list; what it copied stays."""
    done = next(each for each in visitor.json("/jobs")["jobs"] if each["state"] == "DONE")
    assert visitor.post(f"/job/forget?id={done['job']}").url.endswith("/jobs")
    assert visitor.get(f"/job?id={done['job']}").status_code == 404
    assert [*(world.folder / "mirror").rglob("good.csv")]


def test_ten_open_pages_cost_one_question_a_second(visitor: Visitor) -> None:
    """All are told of the same questions, by their numbers: nobody has one of its own."""
    streams = [visitor.get("/live", stream=True) for _ in range(10)]
    seen = [numbers_of(stream, 3) for stream in streams]
    for stream in streams:
        stream.close()
    last = max(max(each) for each in seen)
    first = min(min(each) for each in seen)
    assert all(each == list(range(each[0], each[0] + 3)) for each in seen)
    assert last - first < 30, "each page would have asked for itself"


def numbers_of(stream: requests.Response, count: int) -> list[int]:
    found = []
    for line in stream.iter_lines():
        if line.startswith(b"id: "):
            found.append(int(line[4:]))
        if len(found) == count:
            break
    return found


def test_a_ledger_that_is_not_there_yet(tmp_path: Path) -> None:
    """Pages say what to do; once there is one it is shown, without a new start."""
    place = tmp_path / "ledger.db"
    site = Site([ledger_section(lambda: open_ledger(place) if place.exists() else None)])
    with serve_console(site) as served:
        visitor = Visitor(served)
        visitor.sign_in(site.sessions.token)
        for path in ("", "/loads", "/jobs"):
            assert "calque " in visitor.get(path).text
        assert visitor.json()["sections"]["ledger"] == {"where": None}
        assert visitor.get("/load?id=x").status_code == 404
        open_ledger(place).close()
        assert visitor.json()["sections"]["ledger"]["tables"] == 0


def test_a_ledger_on_postgresql(postgres: PostgresServer) -> None:
    """The same pages; what its text cannot hold is nobody's id, and no failure of ours."""
    url = postgres.database()
    try:
        site = Site([ledger_section(lambda: open_ledger(url))])
        with serve_console(site) as served:
            visitor = Visitor(served)
            visitor.sign_in(site.sessions.token)
            for path in ("", "/loads", "/jobs"):
                assert visitor.get(path).status_code == 200
            for path in ("/load?id=%00", "/job?id=%00", "/job?id=a%00b", "/load?id=%ED%A0%80"):
                assert visitor.get(path).status_code == 404, path
    finally:
        postgres.drop(url)
