"""Starts Spark's JVM straight from Python: no shell script, no launcher JVM.

The stock way (``spark-submit``) runs a shell script that runs a JVM that prints the command of the
JVM that is wanted. It takes several seconds more, and it asks for a module that the packaged
runtime does not have. The JVM started here ends by itself when its standard input is closed, that
is, when this process ends, however it ends.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from calque.errors import MissingExtra, Unavailable
from calque.spark import class_cache
from calque.spark.java import Jvm, find_jvm

START_LIMIT = 120.0
"""Seconds after which a JVM that has not answered is given up."""

_OPEN_PACKAGES = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.util.calendar",
)
"""Packages of java.base that Spark reaches into."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running JVM: its process, and how py4j reaches it."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str

    def __repr__(self) -> str:
        return f"Gateway(pid={self.process.pid}, port={self.port})"

    def let_go(self) -> None:
        """Tell the JVM to end, and do not wait until it has removed its temporary files."""
        if self.process.stdin:
            self.process.stdin.close()

    def stop(self, patience: float = 20) -> None:
        """End the JVM and wait for it; a training run needs time to write its cache."""
        self.let_go()
        try:
            self.process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def spark_home() -> Path:
    """The folder of the installed pyspark; MissingExtra where it is not installed."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MissingExtra.of("spark", "Running on Spark")
    return Path(spec.origin).resolve().parent


def start(settings: Mapping[str, str], memory: str, train: Path | None = None) -> Gateway:
    """Start a JVM with these Spark settings and wait until it can be reached.

    ``train``: where the JVM writes its class cache when it ends.
    """
    jvm = find_jvm()
    command = java_command(jvm)
    if train is None:
        cache = class_cache.jvm_options(class_cache.cache_path(jvm, command))
    else:
        cache = class_cache.training_options(train)
    configured = [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
    return _launch(
        [
            *command,
            *cache,
            f"-Xmx{memory}",
            f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
            "org.apache.spark.deploy.SparkSubmit",
            *configured,
            "pyspark-shell",
        ],
        _environment(jvm, settings),
        quiet=train is not None,
    )


def java_command(jvm: Jvm) -> list[str]:
    """The part of the command line that a class cache depends on."""
    jars = sorted(str(jar) for jar in (spark_home() / "jars").glob("*.jar"))
    opens = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPEN_PACKAGES]
    modern = ["--sun-misc-unsafe-memory-access=allow"] if jvm.major >= 23 else []
    return [
        str(jvm.java),
        "-cp",
        os.pathsep.join(jars),
        # One short session on few cores: the serial collector and the first compiler start fastest.
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        *opens,
        "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
        "--enable-native-access=ALL-UNNAMED",
        *modern,
        "-Dio.netty.tryReflectionSetAccessible=true",
    ]


def _environment(jvm: Jvm, settings: Mapping[str, str]) -> dict[str, str]:
    environment = os.environ | {
        "JAVA_HOME": str(jvm.home),
        "SPARK_HOME": str(spark_home()),
        "SPARK_CONNECT_MODE": "0",
    }
    if not settings.get("spark.master", "").startswith("local"):
        return environment  # executors elsewhere must reach the driver
    environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    if environment.get("PYSPARK_PYTHON", sys.executable) == sys.executable:
        # A JVM that knows its home lets Python workers import pyspark from a zip of sources, which
        # is compiled anew in each; this Python has it compiled already.
        del environment["SPARK_HOME"]
    return environment


def _launch(command: list[str], environment: dict[str, str], quiet: bool) -> Gateway:
    with tempfile.TemporaryDirectory(prefix="calque-spark-") as folder:
        told = Path(folder) / "connection"
        # A session of its own: Ctrl-C reaches us, and we end the JVM in order.
        out = subprocess.DEVNULL if quiet else None
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            env=environment | {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(told)},
            start_new_session=True,
        )
        import_module("pyspark.sql")  # it will be needed, and the JVM is busy for a second
        port, secret = _connection(process, told)
    return Gateway(process, port, secret)


def _connection(process: subprocess.Popen[bytes], told: Path) -> tuple[int, str]:
    """Wait for the file in which the JVM tells its port and secret."""
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Unavailable(
                f"Spark's JVM ended while starting (exit code {process.returncode})",
                hint="See its messages above; `calque doctor` tells which Java is used.",
            )
        raw = told.read_bytes() if told.exists() else b""
        if len(raw) > 8:
            port, length = struct.unpack_from(">ii", raw)
            if len(raw) == 8 + length:
                return port, raw[8:].decode()
        time.sleep(0.02)
    process.kill()
    raise Unavailable(f"Spark's JVM did not answer within {START_LIMIT:.0f} s")
