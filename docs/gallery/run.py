"""Run the examples of the gallery, and store what they print and draw: `make docs-gallery`.

    python docs/gallery/run.py [PAGE …]
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "python/examples"
# Page and script. The last one needs `easyllp datasets get mnist`.
PAGES = {
    "quickstart": "quickstart",
    "your-reports": "your_reports",
    "are-my-bags-random": "are_my_bags_iid",
    "model-selection": "model_selection",
    "tuning": "tuning",
    "multi-class": "multi_class",
    "noisy-counts": "noisy_counts",
    "onnx-serving": "onnx_serving",
    "xgboost": "xgboost_adult",
    "pytorch": "torch_cnn",
}


def main() -> None:
    """Run the pages that are named, or all."""
    for page in sys.argv[1:] or PAGES:
        figure = HERE / f"figures/{page}.svg"
        words = [sys.executable, str(EXAMPLES / f"{PAGES[page]}.py"), "--out", str(figure)]
        done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
        lines = [line.rstrip() for line in done.stdout.splitlines() if not line.startswith("figure: ")]
        (HERE / f"output/{page}.txt").write_text("\n".join(lines).strip("\n") + "\n", encoding="utf-8")
        print(f"{page}: {len(lines)} lines")


if __name__ == "__main__":
    main()
