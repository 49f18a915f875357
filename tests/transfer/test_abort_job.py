"""Jobs that are stopped by others, and jobs that are given up."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from calque.errors import ConditionNotMatch, NotFound
from calque.ledger import Ledger, open_ledger
from calque.ledger.job_record import Job
from calque.ledger.jobs import find_job, list_jobs, stop_job
from calque.operator import Operator
from calque.transfer.api import copy_tree
from calque.transfer.jobs.abort_job import abort_job
from tests.servers.proxy import Fault, FaultProxy
from tests.servers.seaweedfs import S3Server
from tests.transfer.conftest import s3_options
from tests.transfer.killed_run import Child
from tests.transfer.test_resume import MIB, fill, tree_of


def wait_for_job(ledger: Ledger) -> Job:
    """The job of the one run there is, once it runs."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for job in list_jobs(ledger):
            return job
        time.sleep(0.02)
    raise AssertionError("no job was begun")


def test_a_run_that_is_stopped_elsewhere(tmp_path: Path) -> None:
    """Its process ends by itself and says why; the job is gone on with, and nothing is missing."""
    source, target = tmp_path / "source", tmp_path / "target"
    wanted = fill(source, 100)
    child = Child(tmp_path / "state", f"{source}/", f"{target}/")
    with open_ledger(tmp_path / "state" / "calque" / "ledger.db") as ledger:
        # Slow enough to be stopped meanwhile. Frozen it could hold the ledger, and end before us.
        process = child.spawn(rate=1)
        job = wait_for_job(ledger)
        stop_job(ledger, job.job_id, "a test")
        _, errors = process.communicate(timeout=200)
        assert process.returncode == 1
        assert "was stopped" in errors
        assert find_job(ledger, job.job_id).message == "stopped by a test"
        assert child.finish()["job"] == job.job_id
    assert tree_of(target) == wanted


def test_a_job_that_is_given_up_leaves_no_parts(
    tmp_path: Path, tree_bucket: S3Server, s3: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of a large copy are removed from the server, what was copied whole stays, and the job
    is gone: the next run begins anew."""
    s3.write("from/a", b"small")
    s3.write("from/big", os.urandom(17 * MIB))
    options = {**s3_options(tree_bucket), "threshold": 6 * MIB, "part_size": 5 * MIB}
    with FaultProxy(tree_bucket.endpoint) as proxy:
        service = {**options, "endpoint_url": proxy.endpoint}
        locations = (s3.location("from/"), s3.location("to/"))
        child = Child(tmp_path / "state", *locations, service=service, concurrent=1)
        process = child.spawn()
        third = Fault(
            method="PUT", contains="partNumber=3", hook=lambda _: process.kill(), drop=True
        )
        proxy.add(third)
        process.communicate(timeout=200)
        assert process.returncode == -signal.SIGKILL
        assert [*s3.leftovers("to/")] != []
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", str(options["access_key_id"]))
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", str(options["secret_access_key"]))
        with open_ledger(tmp_path / "state" / "calque" / "ledger.db") as ledger:
            (left,) = list_jobs(ledger)
            done = abort_job(ledger, left.job_id)
            assert (done.cleared, done.left) == (1, ())
            assert list_jobs(ledger) == []
    assert [*s3.leftovers("to/")] == []
    assert [each.path for each in s3.list("to/")] in ([], ["to/a"])


def test_a_job_whose_source_is_gone_is_given_up(tmp_path: Path) -> None:
    """It is forgotten all the same, and what may be left is told by its path."""
    source, target = tmp_path / "source", tmp_path / "target"
    fill(source, 40)
    child = Child(tmp_path / "state", f"{source}/", f"{target}/")
    assert child.run("tree.told@10:kill").returncode == -signal.SIGKILL
    with open_ledger(tmp_path / "state" / "calque" / "ledger.db") as ledger:
        (left,) = list_jobs(ledger)
        assert abort_job(ledger, left.job_id).left == ()
        with pytest.raises(NotFound):
            abort_job(ledger, left.job_id)


def test_a_job_that_is_over_is_not_given_up(tmp_path: Path, state: Path) -> None:
    """There is nothing left of it."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a").write_bytes(b"1")
    job = copy_tree(f"{tmp_path}/source/", tmp_path / "target").job
    with (
        open_ledger(state / "calque" / "ledger.db") as ledger,
        pytest.raises(ConditionNotMatch, match="is over"),
    ):
        abort_job(ledger, job)
