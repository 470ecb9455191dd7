"""What the README shows is run."""

from __future__ import annotations

import pathlib
import re


def test_the_readme_s_example(capsys):
    readme = (pathlib.Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    [example] = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    assert names["probabilities"].shape == (16281, 2)
    assert "accuracy" in capsys.readouterr().out
