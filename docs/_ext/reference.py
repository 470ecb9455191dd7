"""Pages of the reference that are made from the program and the package, each time the site is built.

The command-line reference is what `easyllp COMMAND --help` says, as headings and definition lists. The program is
the one that $EASYLLP names, or that has been built in target/.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess

from sphinx.errors import ExtensionError

ROOT = pathlib.Path(__file__).resolve().parents[2]


def program() -> str:
    """The program `easyllp`, where it has been built."""
    for candidate in (os.environ.get("EASYLLP"), ROOT / "target/debug/easyllp", ROOT / "target/release/easyllp"):
        if candidate and pathlib.Path(candidate).exists():
            return str(candidate)
    raise ExtensionError("the program has not been built: run `cargo build`, or set EASYLLP to its path")


def text_of(*words: str) -> str:
    """What the program prints."""
    environment = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run([program(), *words], capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def commands() -> list[tuple[str, str]]:
    """The commands with their first sentences."""
    section = text_of("--help").split("\nCommands:\n")[1].split("\n\n")[0]
    found = re.findall(r"^  (\S+)\s+(\S.*(?:\n {4,}\S.*)*)", section, flags=re.MULTILINE)
    return [(name, " ".join(about.split())) for name, about in found if name != "help"]


def escaped(text: str) -> str:
    """Text that Markdown leaves as it is, but for words in backquotes."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([\\*_<\[\]$|{}])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def page_of(command: str) -> str:
    """The page of a command from its help."""
    blocks = re.split(r"\n\s*\n(?=\s*\S)", text_of(*command.split(), "--help").strip("\n"))
    lines = [f"# easyllp {command}", ""]
    head: list[str] = []
    while blocks and not blocks[0].startswith("Usage:"):
        head.append(" ".join(blocks.pop(0).split()))
    lines += [escaped(part) + "\n" for part in head]
    lines += ["```text", blocks.pop(0), "```", ""]
    section, is_new = "", False
    for block in blocks:
        starts = True
        for line in block.split("\n"):
            heading = re.match(r"^(\S[^:]*):$", line)
            entry = re.match(r"^ {2,6}([-<\[].*|[a-z][\w-]*  .*)$", line)
            if heading:
                section = heading[1]
                lines += ["", f"## {section}", ""]
            elif entry and not line.startswith(" " * 8):
                name, _, about = entry[1].strip().partition("  ")
                lines += ["", f"`{name}`"] + ([": " + escaped(about.strip())] if about else [])
                starts, is_new = True, not about
            elif line.strip():
                text = escaped(line.strip())
                if starts and not is_new:
                    lines.append("")
                lines.append((": " if is_new else "  ") + text)
                starts, is_new = False, False
    return "\n".join(lines).rstrip() + "\n"


def nested(command: str) -> list[str]:
    """The subcommands of a command."""
    text = text_of(command, "--help")
    if "\nCommands:\n" not in text:
        return []
    names = re.findall(r"^  (\S+)", text.split("\nCommands:\n")[1].split("\n\n")[0], flags=re.MULTILINE)
    return [f"{command} {name}" for name in names if name != "help"]


def write(_app: object) -> None:
    """Write the pages into docs/reference/generated, and only those that changed."""
    folder = ROOT / "docs/reference/generated"
    folder.mkdir(exist_ok=True)
    pages, table, names = {}, ["| command | what it does |", "|---|---|"], []
    for name, about in commands():
        for command in [name, *nested(name)]:
            page = command.replace(" ", "-")
            pages[page] = page_of(command)
            names.append(page)
        table.append(f"| [`easyllp {name}`](generated/{name}.md) | {escaped(about)} |")
    pages["commands"] = "\n".join(table) + "\n"
    pages["toctree"] = "\n".join(["```{toctree}", ":hidden:", "", *(f"generated/{name}" for name in names), "```", ""])
    for file in folder.glob("*.md"):
        if file.stem not in pages:
            file.unlink()
    for name, text in pages.items():
        file = folder / f"{name}.md"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def setup(app):  # type: ignore[no-untyped-def]
    """Write the pages before the sources are read."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
