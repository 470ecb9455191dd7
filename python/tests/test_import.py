"""What an import brings along."""

from __future__ import annotations

import subprocess
import sys

# scikit-learn imports pandas, and that PyArrow, where they are installed: they are hidden from it, but not from easyllp.
SCRIPT = """
import sys
sys.modules["pandas"] = sys.modules["pyarrow"] = None
import sklearn.base, sklearn.utils.multiclass, sklearn.utils.validation
del sys.modules["pandas"], sys.modules["pyarrow"]
import easyllp
print(*sys.modules)
"""


def test_frameworks_are_imported_only_when_used(tmp_path):
    optional = {"torch", "xgboost", "lightgbm", "pandas", "polars", "pyarrow", "matplotlib"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, cwd=tmp_path)
    imported = done.stdout.split()
    assert "easyllp._easyllp" in imported and optional.isdisjoint(imported)
