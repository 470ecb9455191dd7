"""Long work leaves Python free: it hears interrupts, and lets other threads go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from easyllp import LLPClassifier

SCRIPT = """
import sys, time
import numpy as np
from easyllp import LLPClassifier, make_bags
X = np.random.default_rng(1).normal(size=(200_000, 50)).astype(np.float32)
print("ready", flush=True)
try:
    exec(sys.argv[1])
except KeyboardInterrupt:
    print("stopped", flush=True)
"""

FITS = {
    "network": """
        LLPClassifier(model="mlp:512,512", epochs=1000, holdout=0).fit(X, X[:, 0] > 0)
    """,
    "eight penalties": """
        many = np.tile(X, (4, 1))
        while True:
            LLPClassifier(l2="auto").fit(many, many[:, :10].argmax(axis=1))
    """,
    "rounds": """
        bags, proportions = make_bags(X[:, :10].argmax(axis=1), size=4)
        LLPClassifier("llp-em", l2=1e-6, holdout=0, method_params={"rounds": 1000}).fit(X, proportions, bags=bags)
    """,
    "line after line": """
        LLPClassifier(epochs=10**7, holdout=0, verbose=1).fit(X[:64], X[:64, 0] > 0)
    """,
    "lines that Python writes": """
        class Slow:
            def write(self, text):
                time.sleep(0.02)
        sys.stderr = Slow()
        LLPClassifier(epochs=10**7, holdout=0, verbose=1).fit(X[:20_000], X[:20_000, 0] > 0)
    """,
    "lines that cannot be written": """
        class Closed:
            def write(self, text):
                raise OSError("closed")
        sys.stderr = Closed()
        LLPClassifier(epochs=10**7, holdout=0, verbose=1).fit(X[:64], X[:64, 0] > 0)
    """,
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent by number")
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_an_interrupt_stops_training_within_a_second(tmp_path, fit):
    command = [sys.executable, "-c", SCRIPT, textwrap.dedent(fit)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path
    ) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            time.sleep(1.5)
            os.kill(child.pid, signal.SIGINT)
            # A second is promised; machines that test are busy.
            said, _ = child.communicate(timeout=10)
        finally:
            child.kill()
    assert said == "stopped\n"


def test_other_threads_go_on_during_a_fit():
    X = np.random.default_rng(1).normal(size=(20_000, 50)).astype(np.float32)
    ticks, is_done = [], threading.Event()

    def tick():
        while not is_done.wait(0.01):
            ticks.append(time.monotonic())

    other = threading.Thread(target=tick)
    other.start()
    begin = time.monotonic()
    try:
        LLPClassifier(model="mlp:64", epochs=20, holdout=0).fit(X, X[:, 0] > 0)
    finally:
        end = time.monotonic()
        is_done.set()
        other.join()
    # A hundred a second on a free machine; with the lock held there would be one before and one after.
    assert sum(begin < moment < end for moment in ticks) >= 5
