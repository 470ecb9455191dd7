"""MNIST for the examples, from the folder that the program `easyllp` keeps: $EASYLLP_DATA, or ~/.cache/easyllp."""

import gzip
import os
import pathlib

import numpy as np


def mnist():
    """Handwritten digits: images and digits to train on, images and digits to test on; pixels are from 0 to 1."""
    folder = pathlib.Path(os.environ.get("EASYLLP_DATA") or "~/.cache/easyllp").expanduser() / "mnist"

    def read(name, header):
        file = folder / name
        if not file.exists():
            raise SystemExit(
                f"{file} is not there: run `easyllp datasets get mnist`, or set EASYLLP_DATA to its folder"
            )
        return np.frombuffer(gzip.decompress(file.read_bytes()), dtype=np.uint8, offset=header)

    parts = []
    for part in ("train", "t10k"):
        images = read(f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28).astype(np.float32) / 255
        parts += [images, read(f"{part}-labels-idx1-ubyte.gz", 8).astype(int)]
    return tuple(parts)
