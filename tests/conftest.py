"""What holds for every test."""

from __future__ import annotations

import signal
import threading

# A job in the background of a shell ignores Ctrl-C, and so would every process it starts; tests
# press it.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
