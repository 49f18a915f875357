"""Both ends of a connection ask now and then, while a call runs, whether the other is there.

A machine that loses its power or its network says no farewell. Without asking, a client would wait
for its pieces for ever, and a server would keep a thread for each upload that will never end.
"""

from __future__ import annotations

ASK_EVERY_MS = 30_000
ANSWER_WITHIN_MS = 60_000
RECONNECT_WITHIN_MS = 2_000
"""The longest pause of a client between two tries to connect; gRPC's own is two minutes."""


def keepalive_options() -> list[tuple[str, int]]:
    """The options of a channel, or of a server."""
    return [
        ("grpc.keepalive_time_ms", ASK_EVERY_MS),
        ("grpc.keepalive_timeout_ms", ANSWER_WITHIN_MS),
        ("grpc.http2.ping_timeout_ms", ANSWER_WITHIN_MS),
        # Servers take more frequent questions for an attack, and hang up.
        ("grpc.http2.min_recv_ping_interval_without_data_ms", ASK_EVERY_MS // 3),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_reconnect_backoff_ms", RECONNECT_WITHIN_MS),
    ]
