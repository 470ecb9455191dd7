#!/usr/bin/env bash
# Side by side with llp-learn's DLLP and EM on Adult: seconds and test AUC. Makes an environment for each, since llp-learn pins
# versions of NumPy and PyTorch that are older than ours; PEER and OURS name environments that are there already.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${FOLDER:-target/vs_llp_learn}
mkdir -p "$folder"
if [ -z "${PEER:-}" ]; then
    PEER=$folder/peer
    [ -d "$PEER" ] || { python3 -m venv "$PEER" && "$PEER/bin/pip" install --quiet llp-learn torchvision; }
fi
if [ -z "${OURS:-}" ]; then
    OURS=$folder/ours
    [ -d "$OURS" ] || { python3 -m venv "$OURS" && "$OURS/bin/pip" install --quiet . pandas; }
fi
"$OURS/bin/python" benches/vs_llp_learn/compare.py "$folder" "$OURS/bin/python" "$PEER/bin/python"
