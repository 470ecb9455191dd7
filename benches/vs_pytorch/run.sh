#!/usr/bin/env bash
# Time per epoch against PyTorch, both sides alternately in one run; prints a Markdown table of medians and their ratio.
#
#   benches/vs_pytorch/run.sh [WORKLOAD…]     all of ours by default
#   ROUNDS=5 EPOCHS=3 THREADS="1 2" VENV=/tmp/easyllp-torch
#
# Makes its own virtual environment with PyTorch. Not for CI: run it on a machine that does nothing else.
set -euo pipefail
cd "$(dirname "$0")"
export CUDA_VISIBLE_DEVICES=   # both sides on the processor
venv=${VENV:-/tmp/easyllp-torch}
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c "import torch, numpy" 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet torch numpy
fi
cargo build --quiet --release --package easyllp-benches --bin ours
target=${CARGO_TARGET_DIR:-../../target}
exec "$venv/bin/python" compare.py "$target/release/ours" "$@"
