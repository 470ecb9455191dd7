"""Looks at the page of `reproduce` in headless Chromium, as the report's page.py looks at its own: the console stays silent, every
chart has a size and words for those who do not see it, links lead to files beside the page, and nothing sticks out of a phone.

    study_page.py EASYLLP FOLDER      EASYLLP is the program; FOLDER takes the results, the page and its screenshots
"""

import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "easyllp-report/tests"))
from page import WIDTHS, Links, look  # noqa: E402

# Those that take seconds; all kinds of charts except for the loss by epoch, which is on the page of the real run.
EXPERIMENTS = ("variance", "sgd", "erm", "linear")
REAL_RUN = pathlib.Path(__file__).resolve().parents[3] / "results"


def make_page(easyllp, folder):
    """The page of some thinned experiments."""
    command = [easyllp, "reproduce", "--quick", *EXPERIMENTS, "--replicas", "2", "--out", folder]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "index.html"


def look_at(page):
    """All that the folder of a page holds is on it, and can be seen. How many experiments there are."""
    folder, text = page.parent, page.read_text()
    numbers, pictures = (sorted(path.name for path in folder.glob(kind)) for kind in ("*.csv", "*.svg"))
    links = Links()
    links.feed(text)
    assert sorted(link for link in links.found if not link.startswith(("data:", "#"))) == numbers, links.found
    sections = re.findall(r"<section class=\"experiment\" id=\"[\w-]+\"><h2>(.*)</h2>", text)
    assert all(f"id=\"{link[1:]}\"" in text for link in links.found if link.startswith("#")), "anchors of the claims"
    assert len(set(sections)) == len(numbers), sections
    made = re.findall(r"; seed \d+; \d+ (?:of \d+ cells so far|cells)", text)
    assert len(made) == len(numbers), "every section says what made it"
    assert text.count('class="verdict') == 8, "a verdict for every claim"
    for width in WIDTHS:
        measured = look(page, folder / f"page-{width}.png", width)
        # Keys are drawings, too, without words of their own.
        charts = [figure for figure in measured["figures"] if figure["label"]]
        assert len(charts) == len(pictures), f"{len(charts)} charts, {len(pictures)} pictures"
        for chart in charts:
            assert chart["width"] > 200 and chart["height"] > 150 and len(chart["label"]) > 30, chart
        print(f"{width} wide: {len(charts)} charts, nothing on the console, nothing sticks out")
    return len(numbers)


def main():
    easyllp, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    assert look_at(make_page(easyllp, folder)) == len(EXPERIMENTS)
    real_run = folder / "real-run"
    shutil.copytree(REAL_RUN, real_run, dirs_exist_ok=True, ignore=shutil.ignore_patterns("journal"))
    assert look_at(real_run / "index.html") > len(EXPERIMENTS)


if __name__ == "__main__":
    main()
