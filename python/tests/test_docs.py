"""What the site shows is run: its blocks of code, page by page and in order, and what they print is compared.

- A block of `python` runs in one namespace for the page, a block of `sh` in a shell; both in one empty folder.
- A block with a caption becomes the file that the caption names.
- A block of the class `exit-1` ends with that exit code.
- A block of `text` that follows code is what the code prints. Words are compared as they are, numbers with some room, since their
  last digits depend on the processor; `...` stands for lines left out.
- A block of `console` is for installing and downloading only, and is not run.

`EASYLLP_UPDATE_DOCS=1` writes what is printed into the pages, but for outputs with lines left out.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for page in (ROOT / "docs").rglob("*.md")
    if "generated" not in page.parts and page.parent.name not in ("adr", "output")
)
BLOCK = re.compile(r"^(?P<fence>```|~~~)(?P<head>[^\n]*)\n(?P<body>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
# What neither code nor output is: parts of the page, and formulas.
DIRECTIVES = ("{toctree}", "{include}", "{literalinclude}", "{raw}", "{math}", "{image}", "{auto", "{eval-rst}", "{figure}")


def blocks(page: pathlib.Path) -> list[tuple[str, dict[str, str], str]]:
    """The page's blocks: language, options, text."""
    found = []
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        head, body = match["head"].strip(), match["body"]
        options: dict[str, str] = {}
        if head.startswith("{code-block}"):
            head = head.removeprefix("{code-block}").strip()
            while option := re.match(r":([\w-]+):[ ]*([^\n]*)\n", body):
                options[option[1]] = option[2]
                body = body[option.end() :]
            body = body.lstrip("\n")
        if not head.startswith(DIRECTIVES):
            found.append((head, options, body))
    return found


def number(word: str) -> float | None:
    """The number that a word is, if it is one."""
    try:
        return float(word.strip("(),;:%[]").replace(",", "").replace("−", "-"))
    except ValueError:
        return None


def differs(shown: str, printed: str) -> str | None:
    """The first place where the output is not what the page shows."""
    parts = [part.split() for part in shown.split("...\n")]
    words, place = printed.split(), 0
    for index, part in enumerate(parts):
        starts = [place] if index == 0 else range(place, len(words) + 1)
        fits = [start for start in starts if all(map(same, part, words[start : start + len(part)])) and start + len(part) <= len(words)]
        if not fits:
            if index == 0:
                for a, b in zip(part, words):
                    if not same(a, b):
                        return f"shown {a!r}, printed {b!r}"
            return f"not printed: {' '.join(part)[:200]!r}"
        place = fits[0] + len(part)
    return None if place == len(words) or len(parts) > 1 and not parts[-1] else f"also printed: {' '.join(words[place:])[:200]!r}"


def same(shown: str, printed: str) -> bool:
    """Whether two words are the same, numbers up to their last digits."""
    if shown == printed:
        return True
    a, b = number(shown), number(printed)
    return a is not None and b is not None and abs(a - b) <= 0.02 + 0.05 * abs(a)


def update(page: pathlib.Path, code: str, shown: str, printed: str) -> None:
    """Replace the output that follows this code."""
    text = page.read_text(encoding="utf-8")
    start = text.index(f"```text\n{shown}```", text.index(code))
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    end = start + len(f"```text\n{shown}")
    page.write_text(text[:start] + "```text\n" + "\n".join(lines) + "\n" + text[end:], encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_what_a_page_shows_is_what_happens(page, request, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__page__"}
    environment = dict(os.environ, COLUMNS="100")
    printed: str | None = None
    code = ""
    for language, options, body in blocks(page):
        where = f"{page.name}: {body.strip().splitlines()[0] if body.strip() else ''}"
        if "caption" in options:
            pathlib.Path(options["caption"]).write_text(body, encoding="utf-8")
        elif language == "python":
            capfd.readouterr()
            exec(compile(body, page.name, "exec"), names)
            printed, code = capfd.readouterr().out, body
        elif language == "sh":
            program = pathlib.Path(request.getfixturevalue("program"))
            paths = [str(program.parent), str(pathlib.Path(sys.executable).parent), environment["PATH"]]
            done = subprocess.run(
                ["bash", "-e", "-c", body], capture_output=True, text=True, env={**environment, "PATH": os.pathsep.join(paths)}, timeout=600
            )
            expected = int(options.get("class", "exit-0").removeprefix("exit-"))
            assert done.returncode == expected, f"{where}: {done.stdout}{done.stderr}"
            printed, code = done.stdout + done.stderr, body
        elif language == "text":
            assert printed is not None, f"{where}: an output without the code that prints it"
            difference = differs(body, printed)
            if difference and "EASYLLP_UPDATE_DOCS" in os.environ and "...\n" not in body:
                update(page, code, body, printed)
                difference = None
            assert difference is None, f"{where}: {difference}\nprinted:\n{printed}"
            printed = None
        elif language == "console":
            for line in body.splitlines():
                assert re.match(r"\$ (pip|cargo|git|make|python -m venv|easyllp datasets get|cd) ?|$", line), f"{where}: {line}"
        else:
            pytest.fail(f"{where}: a block of {language!r} is not run")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_no_block_of_code_escapes(page):
    """Every fence is of a block that is seen here: none is indented, quoted, longer than three marks or without a language."""
    text = page.read_text(encoding="utf-8")
    unseen = re.findall(r"^.*(?:```|~~~).*$", BLOCK.sub("", text), flags=re.MULTILINE)
    assert not unseen, f"{page.name}: fences that no block has: {unseen}"
    heads = [match["head"] for match in BLOCK.finditer(text)]
    assert all(re.match(r"\{?[a-z]", head) for head in heads), f"{page.name}: a block without a language: {heads}"


def test_the_blocks_of_the_readme_are_known():
    """Which tests run them: `python/tests/test_readme.py`, and `demo.rs` and `own_data.rs` of the program's."""
    found = blocks(ROOT / "README.md")
    assert [language for language, _, _ in found] == ["sh", "text", "sh", "sh", "python"]
    # What installs, builds and tests is not run again by a test.
    for _, _, body in (found[0], found[2]):
        assert all(re.match(r"(cargo|make|pip) ", line) for line in body.splitlines()), body
