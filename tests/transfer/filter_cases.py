"""The table of cases that states the language of patterns; it holds on every service."""

from __future__ import annotations

from calque.transfer.request.filters import Filters, Rule

CASES: tuple[tuple[str, str, bool], ...] = (
    # rules (+ include, - exclude, in this order), path, whether it is taken
    ("", "a/b.csv", True),
    ("+ *.csv", "a/b.txt", True),
    ("- *.tmp", "x.tmp", False),
    ("- *.tmp", "a/b/x.tmp", False),
    ("- *.tmp", "x.tmp.csv", True),
    ("- /*.tmp", "x.tmp", False),
    ("- /*.tmp", "a/x.tmp", True),
    ("- /a/*", "a/x", False),
    ("- /a/*", "a/b/x", True),
    ("- /a/**", "a/b/x", False),
    ("- /a/**", "ab/x", True),
    ("- a/*", "z/a/x", False),
    ("- a/*", "za/x", True),
    ("- tmp/", "tmp/x", False),
    ("- tmp/", "a/tmp/b/x", False),
    ("- tmp/", "a/tmp", True),
    ("- tmp/", "atmp/x", True),
    ("- tmp", "a/tmp", False),
    ("- tmp", "tmp/x", True),
    ("- /tmp/", "tmp/x", False),
    ("- /tmp/", "a/tmp/x", True),
    ("- a/**/z", "a/z", False),
    ("- a/**/z", "a/b/c/z", False),
    ("- a/**/z", "a/b/cz", True),
    ("- **/z", "z", False),
    ("- a**z", "a/b/z", False),
    ("- x?.csv", "x1.csv", False),
    ("- x?.csv", "x12.csv", True),
    ("- a?b", "a/b", True),
    ("- x[0-9].csv", "x7.csv", False),
    ("- x[0-9].csv", "xa.csv", True),
    ("- x[!0-9].csv", "xa.csv", False),
    ("- x[^0-9].csv", "x7.csv", True),
    ("- a[!b]c", "a/c", True),
    ("- []]", "]", False),
    ("- *.{csv,tsv}", "a.tsv", False),
    ("- *.{csv,tsv}", "a.json", True),
    ("- {a,b/**}/x", "b/c/d/x", False),
    ("- *.{c{s,t}v,json.gz}", "q.ctv", False),
    ("- \\*", "*", False),
    ("- \\*", "a", True),
    ("- [*]", "*", False),
    ("+ *.csv;- **", "a/b.csv", True),
    ("+ *.csv;- *", "a/b.txt", False),
    ("- *.csv;+ a.csv", "a.csv", False),
    ("+ a.csv;- *.csv", "a.csv", True),
    ("+ /a/keep/;- /a/", "a/keep/x", True),
    ("+ /a/keep/;- /a/", "a/other/x", False),
    ("- *.CSV", "a.csv", True),
    ("- a b*", "a b c", False),
    ("- .*", "a/.hidden", False),
    ("- caf\u00e9", "cafe\u0301", True),
    ("- *\n*", "a\nb", False),
)


def filters_of(rules: str) -> Filters:
    """``+ PATTERN;- PATTERN`` as filters."""
    kinds = {"+": Rule.include, "-": Rule.exclude}
    return Filters(rules=tuple(kinds[one[0]](one[2:]) for one in rules.split(";")) if rules else ())
