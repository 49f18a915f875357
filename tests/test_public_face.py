"""What a user sees of calque who imports it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import calque
from calque.errors import DataError, LoadAborted


def test_dir_is_the_public_face() -> None:
    """``dir`` shows what is meant to be used, and all of it is there."""
    assert dir(calque) == sorted(calque.__all__)
    assert [name for name in dir(calque) if not hasattr(calque, name)] == []


def test_load_is_a_function() -> None:
    """``calque.load`` is the function itself, not a module that can be called."""
    assert type(calque.load).__name__ == "function"


def test_load_aborted_is_one_of_the_errors() -> None:
    """It is caught as what it is, and as what it is a kind of."""
    assert calque.errors.LoadAborted is LoadAborted
    assert issubclass(LoadAborted, DataError)
    assert LoadAborted("x").report is None


def test_errors_need_no_second_import() -> None:
    """``calque.errors`` is there after ``import calque`` alone, which loads no layer."""
    code = "import calque, sys; calque.errors.NotFound; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_no_package_has_the_name_of_a_public_function() -> None:
    """Importing a package of the name would put it in the function's place."""
    home = Path(calque.__file__).parent
    shadows = [
        name
        for name in calque.__all__
        if callable(getattr(calque, name))
        and ((home / name).is_dir() or (home / f"{name}.py").is_file())
    ]
    assert shadows == []
