"""Looks at a report in headless Chromium: no request leaves the page, the console stays silent, every figure has a size and
words for those who do not see it, and nothing sticks out of a phone. Leaves a screenshot at each width.

    page.py EASYLLP FOLDER      EASYLLP is the program; FOLDER takes the page and its screenshots
"""

import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys

WIDTHS = (1280, 400)
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
MEASURE = """<script>
addEventListener("load", () => {
  const figures = [...document.querySelectorAll("svg")].map(svg => {
    const box = svg.getBoundingClientRect();
    return { width: box.width, height: box.height, right: box.right, label: svg.getAttribute("aria-label") };
  });
  // What is inside a box that scrolls may be as wide as it likes.
  const parts = [...document.querySelectorAll("main, main *")].filter(part => !part.parentElement.closest(".wide"));
  const page = Math.max(...parts.map(part => part.getBoundingClientRect().right));
  const measured = { page, figures };
  document.body.innerHTML = "<pre id=measured>" + JSON.stringify(measured) + "</pre>";
});
</script>"""


def chromium(page, width, *arguments):
    """What Chromium prints, and what it says on its console."""
    program = shutil.which("chromium") or sys.exit("chromium is not installed")
    command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    command += [f"--window-size={width},2400", "--host-resolver-rules=MAP * ~NOTFOUND", *arguments, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def look(page, screenshot, width):
    """Takes a picture of a page so wide, and measures it: the console stays silent, and nothing sticks out."""
    _, console = chromium(page, width, f"--screenshot={screenshot}")
    assert not console, console
    # No window is narrower than 500; the page is.
    narrow = f"<style>html {{ width: {width}px; }}</style>"
    measuring = page.with_name("measuring.html")
    measuring.write_text(POLICY.sub("", page.read_text()).replace("</body>", narrow + MEASURE + "</body>"))
    printed, _ = chromium(measuring, max(width, 500), "--dump-dom")
    measuring.unlink()
    measured = json.loads(re.search(r"<pre id=\"measured\">(.*)</pre>", printed)[1])
    assert measured["page"] <= width + 1, measured["page"]
    return measured


def make_page(easyllp, folder):
    """A model of the embedded census data, and its report with the true figures beside."""
    def run(*arguments):
        subprocess.run([easyllp, *map(str, arguments)], cwd=folder, check=True, capture_output=True)

    for part in ("train", "test"):
        run("datasets", "export", "adult", "--part", part, "--out", f"{part}.csv")
        run("bag", "--rows", f"{part}.csv", "--label", "income", "--positive", ">50K", "--size", 32,
            "--format", "csv", "--out", part)
    keys = ["--key", "bag", "--count", ">50K"]
    run("train", "--rows", "train/rows.csv", "--reports", "train/reports.csv", *keys, "--out", "model")
    # The rows with their labels back, in one table.
    rows = (folder / "test/rows.csv").read_text().splitlines()
    labels = (folder / "test.csv").read_text().splitlines()
    place = labels[0].split(",").index("income")
    labelled = [f"{row},{label.split(',')[place]}" for row, label in zip(rows, labels, strict=True)]
    (folder / "labelled.csv").write_text("\n".join(labelled) + "\n")
    run("evaluate", "--model", "model", "--rows", "labelled.csv", "--reports", "test/reports.csv", *keys,
        "--label", "income", "--positive", ">50K", "--report", "report.html")
    return folder / "report.html"


class Links(html.parser.HTMLParser):
    """Every address in a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if name in ("src", "href", "srcset", "data", "action")]


def main():
    easyllp, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    page = make_page(easyllp, folder)
    text = page.read_text()
    links = Links()
    links.feed(text)
    assert all(link.startswith("data:") for link in links.found), links.found
    assert not re.search(r"url\(|@import", text), "a style that asks for a file"
    assert POLICY.search(text), "the page forbids itself the network"
    for width in WIDTHS:
        measured = look(page, folder / f"report-{width}.png", width)
        figures = measured["figures"]
        assert len(figures) == 5, f"{len(figures)} figures"
        for figure in figures:
            assert figure["width"] > 200 and figure["height"] > 150, figure
            assert figure["label"] and len(figure["label"]) > 30, figure
            assert figure["right"] <= width + 1, figure
        print(f"{width} wide: {len(figures)} figures, nothing on the console, nothing sticks out")


if __name__ == "__main__":
    main()
