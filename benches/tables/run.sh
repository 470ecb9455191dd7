#!/usr/bin/env bash
# Reading tables against Polars and pandas, in one run. Peers are installed from PyPI into a folder of their own.
#
#   benches/tables/run.sh [FOLDER]      FOLDER keeps the synthetic logs and the peers; 4 GB
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=${1:-$root/target/tables}
mkdir -p "$folder"
cargo build --release --manifest-path "$root/Cargo.toml" -p easyllp-cli -p easyllp-benches --features easyllp-benches/tables
if [ ! -x "$folder/peers/bin/python" ]; then
    python3 -m venv "$folder/peers"
    "$folder/peers/bin/pip" install --quiet polars pandas pyarrow
fi
"$folder/peers/bin/python" "$here/compare.py" "$root/target/release" "$folder"
