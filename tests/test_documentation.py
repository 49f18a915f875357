"""What the documents say of the repository is true: paths, links, decisions, the drawing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DECISIONS = ROOT / "docs" / "decisions"
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
)
HOUSE = ("ARCHITECTURE.md", "CONTRIBUTING.md")
HEADS = ("Decision", "Why", "Figure", "Weighed")
STATUS = re.compile(r"(Accepted|Superseded by \[\d{4}\]\(.*\)), \d{4}-\d\d-\d\d\.")
MADE = {f"docs/reference/{name}.md" for name in ("commands", "settings", "python")}
ENDINGS = "py|md|proto|toml|lock|yml"


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@cache
def file_names() -> frozenset[str]:
    """The names of all files that the repository keeps."""
    folders = [ROOT / name for name in ("src", "tests", "docs", "bench")]
    found = {path.name for folder in folders for path in folder.rglob("*") if path.is_file()}
    return frozenset(found | {path.name for path in ROOT.iterdir() if path.is_file()})


def named_paths(page: str) -> Iterator[str]:
    """Files of our own kinds that a page names, and in the house's own pages folders as well."""
    for name in re.findall(r"`([\w.*/-]+)`", text_of(page)):
        is_folder = name.endswith("/") and re.match(r"\w", name)
        if re.search(rf"\w\.({ENDINGS})$", name) or (page in HOUSE and is_folder):
            yield name


def exists(name: str) -> bool:
    """From the root or from ``src/calque``; a bare file name may lie anywhere."""
    if "/" not in name:
        return any(fnmatch(one, name) for one in file_names()) or name == "calque.toml"
    return any(any(base.glob(name.rstrip("/"))) for base in (ROOT, ROOT / "src" / "calque"))


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_is_there(page: str) -> None:
    """A file that is moved takes the pages along that speak of it."""
    assert [name for name in named_paths(page) if not exists(name)] == []


def test_paths_are_looked_at() -> None:
    """The test above would see a path that is wrong, and has paths to look at."""
    assert not exists("operator/nowhere.py")
    assert not exists("nowhere.py")
    assert len(list(named_paths("ARCHITECTURE.md"))) > 50
    assert len(list(named_paths("CONTRIBUTING.md"))) > 40


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    """Links to files are relative, and the files are there."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text_of(page), flags=re.DOTALL)
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    local = [link for link in links if link and "://" not in link]
    folder = (ROOT / page).parent
    assert [link for link in local if not is_page(folder / link)] == []


def is_page(path: Path) -> bool:
    """A file that is kept, a page that is made from the code, or one that is a notebook."""
    name = path.resolve().relative_to(ROOT).as_posix()
    return path.is_file() or name in MADE or path.with_suffix(".ipynb").is_file()


def drawn_paths() -> Iterator[str]:
    """The lines of the drawing in ARCHITECTURE.md as paths; indentation says what is in what."""
    (drawing,) = re.findall(r"```\n(src/calque/\n.*?)```", text_of("ARCHITECTURE.md"), re.DOTALL)
    above: list[tuple[int, str]] = []
    for line in drawing.splitlines():
        indent = len(line) - len(line.lstrip())
        name = line.split()[0]
        if not re.fullmatch(r"[\w/]+(/|\.py)", name):
            continue  # a line that goes on with what the one above says
        above = [one for one in above if one[0] < indent]
        yield "".join(folder for _, folder in above) + name
        above.append((indent, name))


def test_the_drawing_is_the_house() -> None:
    """Everything drawn is there, and every package of ours is drawn."""
    drawn = set(drawn_paths())
    assert [path for path in drawn if not (ROOT / path).exists()] == []
    packages = {
        f"src/calque/{path.name}/"
        for path in (ROOT / "src" / "calque").iterdir()
        if (path / "__init__.py").is_file()
    }
    assert packages - drawn == set()
    for package in ("operator", "loader"):
        folders = {
            f"src/calque/{package}/{path.name}/"
            for path in (ROOT / "src" / "calque" / package).iterdir()
            if (path / "__init__.py").is_file()
        }
        assert folders - drawn == set()


def decisions() -> list[Path]:
    return sorted(path for path in DECISIONS.glob("*.md") if path.name != "index.md")


def test_decisions_are_numbered_without_gaps() -> None:
    """The next decision takes the next number."""
    numbers = [path.name[:5] for path in decisions()]
    assert numbers == [f"{number:04}-" for number in range(1, len(numbers) + 1)]


@pytest.mark.parametrize("path", decisions(), ids=lambda path: path.name[:4])
def test_decisions_have_one_form(path: Path) -> None:
    """Number and title, status and date, what, why, a figure, what was weighed: in that order."""
    text = path.read_text(encoding="utf-8")
    title, status, _ = text.split("\n\n", 2)
    assert title.startswith(f"# {path.name[:4]}. ")
    assert STATUS.fullmatch(status), status
    assert tuple(re.findall(r"^\*\*([A-Z]\w+)\.\*\*", text, re.MULTILINE)) == HEADS
    (figure,) = re.findall(r"\*\*Figure\.\*\*(.*?)\*\*Weighed\.\*\*", text, re.DOTALL)
    assert re.search(r"\d", figure)


def test_every_decision_is_in_the_index_by_its_title() -> None:
    """One line each, under its topic; no line without a page."""
    listed = re.findall(
        r"^- \[(\d{4})\]\((\S+)\) (.+)$", text_of("docs/decisions/index.md"), re.MULTILINE
    )
    written = [
        (path.name[:4], path.name, path.read_text(encoding="utf-8").split("\n")[0][8:])
        for path in decisions()
    ]
    assert sorted(listed) == written


def test_decisions_that_are_named_by_number_are_there() -> None:
    """``decision 0018`` in a page, a comment or a benchmark is a decision that there is."""
    known = {path.name[:4] for path in decisions()}
    sources = [
        path
        for folder in ("src", "tests", "docs", "bench")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".md"} and path != Path(__file__)
    ]
    named = {
        (number, path.name)
        for path in sources
        for number in re.findall(r"[Dd]ecisions? (\d{4})\b", path.read_text(encoding="utf-8"))
    }
    assert named
    assert [one for one in named if one[0] not in known] == []
