"""Stages as Python spells them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from calque.errors import InvalidInput
from calque.loader.request.paths import location_of, stage_and_files

S3 = ["s3://box/in/a.csv", "s3://box/in/deep/b.csv"]


def test_text_and_paths_are_the_same() -> None:
    """A path is its text; nothing is made absolute or checked."""
    assert stage_and_files(Path("in/a.csv")) == stage_and_files("in/a.csv") == ("in/a.csv", ())
    assert stage_and_files("in/", ["a", "b"]) == ("in/", ("a", "b"))
    assert location_of(Path("lake/t")) == "lake/t"


def test_a_list_is_a_folder_and_names() -> None:
    """Files of one place are named from the folder that they share."""
    assert stage_and_files(S3) == ("s3://box/in/", ("a.csv", "deep/b.csv"))
    assert stage_and_files(["@in/a.csv", "@in/b.csv"]) == ("@in/", ("a.csv", "b.csv"))
    here = os.getcwd()
    assert stage_and_files([Path("x/a.csv"), f"{here}/y/é b.csv"]) == (
        f"{here}/",
        ("x/a.csv", "y/é b.csv"),
    )
    assert stage_and_files(["/a.csv", "/b/c.csv"]) == ("/", ("a.csv", "b/c.csv"))


def test_a_list_of_one_is_that_one() -> None:
    """One path in a list may be a folder or a glob, as it may alone."""
    assert stage_and_files([Path("in")]) == ("in", ())
    assert stage_and_files(("in/*.csv",)) == ("in/*.csv", ())


def test_a_file_beside_a_folder_of_its_name() -> None:
    """Whole names are compared: ``ab`` and ``abc`` share no folder."""
    assert stage_and_files(["s3://box/ab/1", "s3://box/abc/1"]) == ("s3://box/", ("ab/1", "abc/1"))


@pytest.mark.parametrize(
    ("stage", "files", "reason"),
    [
        ([], (), "is empty"),
        (["in/", "a.csv"], (), "may be many"),
        (["in/*.csv", "a.csv"], (), "may be many"),
        (["s3://box/a", "s3://other/a"], (), "one place"),
        (["s3://box/a", "/tmp/a"], (), "one place"),
        (["@in/a", "/tmp/a"], (), "one place"),
        (["@in/a", "@out/a"], (), "one place"),
        (["/t[1]/a", "/t[1]/b"], (), "read as a glob"),
        (["a", "b"], ["c"], "named twice"),
        ("in/", "a.csv", "a list of names"),
        (7, (), "not int"),
        ([7, "a"], (), "not int"),
    ],
)
def test_what_cannot_be_a_stage(stage: Any, files: Any, reason: str) -> None:
    """Each is refused with what it is, before anything is looked for."""
    with pytest.raises(InvalidInput, match=reason):
        stage_and_files(stage, files)


def test_a_name_may_have_brackets() -> None:
    """Names of a list are looked up as they are: only their folder could be taken for a glob."""
    assert stage_and_files(["/in/a[1].csv", "/in/{b}.csv"]) == ("/in/", ("a[1].csv", "{b}.csv"))
