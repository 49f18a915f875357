"""Metrics are data: counts, errors and latencies of each verb."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from calque.errors import NotFound
from calque.operator import Operator
from calque.operator.layers import Call, Chain, Metrics
from calque.operator.layers.metrics import BOUNDS
from tests.operator.layers.conftest import CALL, HandClock


def test_counts_errors_and_time(clock: HandClock) -> None:
    """Every request is counted once, under its verb, with what it took and how it ended."""
    metrics = Metrics(clock=clock)
    chain = Chain((metrics,))
    for took in (0.0005, 0.02, 400.0):
        chain.run(CALL, lambda _, took=took: clock.pass_(took))
    with pytest.raises(NotFound):
        chain.run(Call("stat", "x"), _missing)
    with pytest.raises(ZeroDivisionError):
        chain.run(Call("stat", "x"), lambda _: 1 / 0)
    found = metrics.snapshot()
    assert found["copy_part"].count == 3
    assert found["copy_part"].seconds == pytest.approx(400.0205)
    assert found["copy_part"].buckets[0] == 1
    assert found["copy_part"].buckets[-1] == 1
    assert sum(found["copy_part"].buckets) == 3
    assert found["stat"].errors == {"NotFound": 1, "other": 1}
    assert found["stat"].failed == 2


def _missing(_: Call) -> None:
    raise NotFound("x")


def test_quantiles(clock: HandClock) -> None:
    """A quantile is the upper bound of the bucket it falls into."""
    metrics = Metrics(clock=clock)
    for number in range(100):
        took = 0.004 if number < 90 else 2.0
        metrics(CALL, lambda _, took=took: clock.pass_(took))
    found = metrics.snapshot()["copy_part"]
    assert found.quantile(0.5) == 0.005
    assert found.quantile(0.99) == 2.5
    assert found.quantile(0.0) == BOUNDS[1]


def test_threads_lose_no_count() -> None:
    """Counting is safe between threads."""
    metrics = Metrics()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: metrics(CALL, lambda call: None), range(2000)))
    assert metrics.snapshot()["copy_part"].count == 2000


def test_prometheus_reads_it() -> None:
    """The text parses with Prometheus' own parser and says the same numbers."""
    parser = pytest.importorskip("prometheus_client.parser")
    metrics = Metrics()
    op = Operator.from_uri("memory://", layers=(metrics,))
    op.write("x", b"1")
    op.read("x")
    with pytest.raises(NotFound):
        op.stat("nope")
    families = {f.name: f for f in parser.text_string_to_metric_families(metrics.exposition())}
    samples = families["calque_request_seconds"].samples
    counts = {s.labels["verb"]: s.value for s in samples if s.name.endswith("_count")}
    assert counts == {verb: one.count for verb, one in metrics.snapshot().items()}
    (error,) = families["calque_errors"].samples
    assert error.labels == {"verb": "stat", "kind": "NotFound"}


def test_a_pickled_copy_starts_from_zero() -> None:
    """Numbers belong to the process that counted them."""
    metrics = Metrics()
    metrics(CALL, lambda call: None)
    assert pickle.loads(pickle.dumps(metrics)).snapshot() == {}
