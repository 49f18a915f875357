"""Somebody who reads a page and does all that it shows, in a folder of their own."""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calque.config import load_settings
from calque.loader.request.parse import parse
from tests.command import run_command_text
from tests.documentation.blocks import Block, Command, commands_of
from tests.servers.process import free_ports

SHELL = re.compile(r"[$|<>&;`~]|^(?!calque )")
"""What only a shell can do; a plain ``calque …`` is started without one, which is quicker."""

QUOTED = re.compile(r"'[^']*'")
"""What means nothing to a shell."""

INTO_FILE = re.compile(r"(?P<words>calque [^<>]+) > (?P<name>[\w.]+)")
"""A plain command with its output in a file."""

PORTS = ("7777", "9000", "7780")
"""Those of ``calque serve``; other programs of the machine may have them."""

PATIENCE = 120
"""Seconds that a server may take to begin."""


@dataclass
class Reader:
    """A folder, an environment, names of Python, and servers that run until the page ends."""

    folder: Path
    environment: dict[str, str]
    instead: Mapping[str, str] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
        self.instead = {**self.instead, **ports}

    def follow(self, block: Block) -> None:
        """Do what one block says."""
        text = self._mine(block.text)
        if block.title:
            path = self.folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            if path.suffix == ".py":
                compile(text, str(path), "exec")
        elif block.kind == "console":
            for command in commands_of(block):
                self._type(command, block)
        elif block.kind == "python":
            self._run_python(text, block)
        elif block.kind == "toml":
            self._check_settings(text)
        elif block.kind == "sql":
            for statement in filter(str.strip, re.split(r";?\n", text)):
                parse(statement)
        elif block.kind == "yaml":
            import yaml

            assert yaml.safe_load(text)

    def leave(self) -> None:
        """Stop what still runs, as Ctrl-C does."""
        for process in self.running:
            process.send_signal(signal.SIGINT)
        for process in self.running:
            process.communicate(timeout=60)
        self.running.clear()

    def _mine(self, text: str) -> str:
        for theirs, ours in self.instead.items():
            text = text.replace(theirs, ours)
        return text

    def _type(self, command: Command, block: Block) -> None:
        words = self._mine(command.words)
        if re.match(r"calque (serve|console)\b", words) or " --watch" in words:
            self._start(words, command.shown)
            return
        into_file = INTO_FILE.fullmatch(words)
        plain = into_file["words"] if into_file else words
        if SHELL.search(QUOTED.sub("", plain)):
            printed, code = self._run_shell(words)
        else:
            done = run_command_text(*shlex.split(plain)[1:], cwd=self.folder, env=self.environment)
            if into_file:
                (self.folder / into_file["name"]).write_text(done.stdout, encoding="utf-8")
                done.stdout = ""
            printed, code = done.stdout + done.stderr, done.returncode
        assert code == command.code, (block.line, command.words, printed)
        assert self._missing(command.shown, printed) == [], (block.line, printed)

    def _missing(self, shown: list[str], printed: str) -> list[str]:
        """Lines that a page shows and the command did not print."""
        lines = [squeeze(line) for line in printed.splitlines()]
        wanted = {
            line: ".*".join(map(re.escape, squeeze(self._mine(line)).split("…"))) for line in shown
        }
        return [
            line
            for line, pattern in wanted.items()
            if not any(re.fullmatch(pattern, one) for one in lines)
        ]

    def _start(self, words: str, shown: list[str]) -> None:
        """A command that goes on until it is stopped; it has begun when its lines are printed."""
        if words.startswith("calque serve"):
            flags = ("--port", "--s3-port", "--console-port")
            words += "".join(
                f" {flag} {self.instead[port]}"
                for flag, port in zip(flags, PORTS, strict=True)
                if flag not in words
            )
        told = self.folder.parent / f"told-{len(self.running)}"
        with told.open("w") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "calque.cli", *shlex.split(words)[1:]],
                cwd=self.folder,
                env=self.environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self.running.append(process)
        for _ in range(PATIENCE * 20):
            if not self._missing(shown or ["…(Ctrl-C stops)"], told.read_text()):
                return
            assert process.poll() is None, told.read_text()
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        raise AssertionError(f"{words}: {self._missing(shown, told.read_text())} was not printed")

    def _run_shell(self, words: str) -> tuple[str, int]:
        """In bash; what it exports holds for the commands that follow."""
        kept = self.folder.parent / "environment"
        script = f'{words}\ncode=$?\nenv -0 > "{kept}"\nexit $code\n'
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=250,
        )
        entries = kept.read_text(encoding="utf-8").split("\0")
        self.environment = dict(one.split("=", 1) for one in entries if "=" in one)
        return done.stdout + done.stderr, done.returncode

    def _run_python(self, code: str, block: Block) -> None:
        """In this process, as a script in the folder."""
        before, here = dict(os.environ), Path.cwd()
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.folder)
        printed = io.StringIO()
        try:
            with redirect_stdout(printed):
                exec(compile(code, f"line {block.line}", "exec"), self.names)
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(before)
        expected = re.findall(r"# → (.*)", code)
        if expected:
            assert printed.getvalue().splitlines() == expected, block.line

    def _check_settings(self, text: str) -> None:
        tomllib.loads(text)
        path = self.folder.parent / "shown.toml"
        path.write_text(text, encoding="utf-8")
        load_settings(path, environ={})


def squeeze(line: str) -> str:
    """Blanks do not count: a table has tabs in a pipe and columns on a terminal."""
    return " ".join(line.split())
