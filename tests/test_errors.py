"""The error tree."""

import pickle

import pytest

from calque import errors


def every_error() -> list[type[errors.CalqueError]]:
    found = [errors.CalqueError]
    for kind in found:
        found.extend(each for each in kind.__subclasses__() if each.__module__ == errors.__name__)
    return found


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_every_error_pickles_with_its_hint(kind: type[errors.CalqueError]) -> None:
    """An error crosses process borders whole: a Spark task's failure reads like a local one."""
    error = kind("what happened", hint="what to do", retry_after=2.5)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (again.message, again.hint, again.retry_after) == ("what happened", "what to do", 2.5)
    assert str(again) == "what happened\n  what to do"


def test_the_tree_drawn_in_the_docstring_is_the_tree() -> None:
    """The drawing at the top of the module names every class, and no class that is not there."""
    drawn = {
        word
        for line in (errors.__doc__ or "").splitlines()
        if "──" in line
        for word in [line.split("── ")[1].split()[0]]
    }
    assert drawn == {kind.__name__ for kind in every_error()} - {"CalqueError"}


def test_builtins_are_inherited_too() -> None:
    """Code that knows only the builtins still catches ours."""
    assert issubclass(errors.NotFound, FileNotFoundError)
    assert issubclass(errors.TimedOut, TimeoutError)
    assert errors.Unavailable("x").retryable
    assert not errors.InvalidInput("x").retryable
