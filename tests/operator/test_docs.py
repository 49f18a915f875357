"""The examples of docs/operator.md are true."""

import ast
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "operator.md"


def test_every_example_runs_and_says_what_it_shows() -> None:
    """All blocks run in order; an expression with a literal in its comment has that value."""
    names: dict[str, Any] = {"__name__": "docs"}
    shown = 0
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        lines = block.splitlines()
        for node in ast.parse(block).body:
            source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            expected = literal(lines[(node.end_lineno or 1) - 1])
            if isinstance(node, ast.Expr) and expected is not None:
                assert eval(ast.unparse(node.value), names) == expected[0], source
                shown += 1
            else:
                exec(compile(ast.Module([node], []), str(PAGE), "exec"), names)
    assert shown >= 10


def literal(line: str) -> tuple[Any] | None:
    _, mark, comment = line.partition("  # ")
    text = re.split(r": |, perhaps", comment)[0] if mark else ""
    try:
        return (ast.literal_eval(text),)
    except (ValueError, SyntaxError):
        return None
