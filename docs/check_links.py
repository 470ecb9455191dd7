"""Check a site that has been built: each link to a page, an anchor or a file leads somewhere, and nothing is fetched from elsewhere.

    python docs/check_links.py FOLDER
"""

from __future__ import annotations

import pathlib
import sys
import urllib.parse
from html.parser import HTMLParser


class Page(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note links, loads and anchors."""
        of = {name: value or "" for name, value in attributes}
        self.anchors |= {of[name] for name in ("id", "name") if name in of}
        if tag == "a" and "href" in of:
            self.links.append(of["href"])
        if tag == "link" and "stylesheet" in of.get("rel", "") or tag in ("script", "img", "iframe"):
            self.loads.append(of.get("href") or of.get("src") or "")


def main() -> None:
    """Check all pages, and list what is wrong."""
    folder = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path) for path in folder.rglob("*.html")}
    wrong = []
    for path, page in pages.items():
        for link in page.links + page.loads:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                if link in page.loads and url.scheme != "data":
                    wrong.append(f"{path.relative_to(folder)}: loads {link}")
                continue
            target = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                wrong.append(f"{path.relative_to(folder)}: {link} does not exist")
            elif target in pages and urllib.parse.unquote(url.fragment) not in pages[target].anchors:
                wrong.append(f"{path.relative_to(folder)}: {link} has no such anchor")
    print("\n".join(sorted(set(wrong))) or f"{len(pages)} pages, all links lead somewhere")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
