"""What holds for every test."""

from __future__ import annotations

import signal
import threading

# A job in the background of a shell ignores Ctrl-C, one under nohup a closed terminal, and so would
# every process they start; tests send both.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
