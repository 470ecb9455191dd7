"""Looks at the page of `reproduce` in headless Chromium, as the report's page.py looks at its own: the console stays silent, every
chart has a size and words for those who do not see it, links lead to files beside the page, and nothing sticks out of a phone.

    study_page.py EASYLLP FOLDER      EASYLLP is the program; FOLDER takes the results, the page and its screenshots
"""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "easyllp-report/tests"))
from page import WIDTHS, Links, look  # noqa: E402

# Those that take seconds; all kinds of charts but the course of a loss.
EXPERIMENTS = ("variance", "sgd", "erm", "linear")


def make_page(easyllp, folder):
    """The page of some thinned experiments."""
    command = [easyllp, "reproduce", "--quick", *EXPERIMENTS, "--replicas", "2", "--out", folder]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "index.html"


def main():
    easyllp, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    page = make_page(easyllp, folder)
    text = page.read_text()
    links = Links()
    links.feed(text)
    beside = [link for link in links.found if not link.startswith("data:")]
    assert len(beside) == len(EXPERIMENTS) and all((folder / link).exists() for link in beside), links.found
    sections = re.findall(r"<section class=\"experiment\"><h2>(.*)</h2>", text)
    assert len(set(sections)) == len(EXPERIMENTS), sections
    assert text.count('class="verdict') == 7, "a verdict for every claim"
    assert text.count("easyllp reproduce variance") == len(EXPERIMENTS), "every section says what made it"
    for width in WIDTHS:
        measured = look(page, folder / f"page-{width}.png", width)
        # Keys are drawings, too, without words of their own.
        charts = [figure for figure in measured["figures"] if figure["label"]]
        assert len(charts) == 11, f"{len(charts)} charts"
        for chart in charts:
            assert chart["width"] > 200 and chart["height"] > 150 and len(chart["label"]) > 30, chart
        print(f"{width} wide: {len(charts)} charts, nothing on the console, nothing sticks out")


if __name__ == "__main__":
    main()
