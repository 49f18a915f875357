"""In which order files of tests start, and which of them one worker takes together."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

ONE_JVM = (
    "loader/run/transform/test_select.py",
    "loader/run/transform/test_run_transformation.py",
    "loader/run/test_piece_joiner.py",
    "loader/run/engines/test_attempts.py",
    "loader/run/engines/test_crashing_files.py",
    "loader/run/engines/test_engines.py",
    "loader/run/engines/test_limits.py",
    "loader/run/engines/test_progress.py",
    "loader/run/engines/test_spark_failures.py",
    "loader/run/engines/test_spark_source.py",
    "loader/test_own_store.py",
    "spark/test_tasks.py",
    "store/upkeep/test_spark_runner.py",
    "transfer/test_cluster.py",
    "transfer/test_collisions.py",
    "transfer/test_renames.py",
    "transfer/test_split_copies.py",
    "documentation/test_pages.py",
)
"""Files with tests on Spark in their own process. A JVM takes fifteen seconds of a processor until
it is warm, so one worker has it and does all of them."""

LONGEST = (
    *ONE_JVM,
    "loader/test_cluster.py",
    "loader/test_crash.py",
    "cli/test_demo.py",
    "loader/test_two_ledgers.py",
    "loader/test_bucket.py",
    "operator/behaviour/test_killed.py",
    "operator/behaviour/test_streamed_parts.py",
    "operator/behaviour/test_copy.py",
    "loader/test_lost_ledger.py",
    "store_client/test_frozen_nodes.py",
    "store/upkeep/test_killed.py",
    "operator/services/s3/test_killed_process.py",
    "spark/test_session.py",
    "store/metabase/test_histories.py",
    "transfer/test_services.py",
)
"""Files of tests that take the longest, in that order. They start first: one that came last would
keep a worker busy while the others have nothing left to do."""


def start_order(nodeid: str) -> int:
    """The place of a test in the queue; all but the longest are last, in the order they lie."""
    path = _file_of(nodeid)
    return LONGEST.index(path) if path in LONGEST else len(LONGEST)


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0].removeprefix("tests/")


class Schedule(LoadFileScheduling):
    """A file is done by one worker, and so are all files that need the JVM."""

    def _split_scope(self, nodeid: str) -> str:
        return "one JVM" if _file_of(nodeid) in ONE_JVM else super()._split_scope(nodeid)
