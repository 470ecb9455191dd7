"""Serve a model with ONNX Runtime: trained on bags, exported from columns to classes, asked over HTTP.

    python onnx_serving.py [--out figure.svg]

The server does not use easyllp: the file holds the encoding of the columns, too. Needs onnxruntime and pandas.
"""

import argparse
import http.server
import json
import pathlib
import tempfile
import threading
import urllib.request

import numpy as np
import onnxruntime
from _figure import draw

from easyllp import LLPClassifier, datasets, make_bags

options = argparse.ArgumentParser()
options.add_argument("--out", help="draw the figure into this file, .svg or .png")
options = options.parse_args()

# Train on bags, and export.
train, test = datasets.adult()
bags, proportions = make_bags(train.y, size=32)
model = LLPClassifier().fit(train.X, proportions, bags=bags)
path = pathlib.Path(tempfile.mkdtemp()) / "income.onnx"
model.to_onnx(path)
print(f"income.onnx: {path.stat().st_size / 1000:.0f} kB")

# The server: columns in, probabilities out.
session = onnxruntime.InferenceSession(path)
types = {node.name: node.type for node in session.get_inputs()}


def as_input(name, values):
    """One column as ONNX takes it: text, or numbers in which NaN is missing."""
    if types[name] == "tensor(string)":
        return np.array([["" if value is None else str(value)] for value in values], dtype=object)
    return np.array([[np.nan if value is None else value] for value in values], dtype=np.float64)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        columns = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        inputs = {name: as_input(name, columns[name]) for name in types}
        labels, probabilities = session.run(["label", "probabilities"], inputs)
        answer = json.dumps({"label": [str(l) for l in labels.ravel()], "probability": probabilities[:, 1].tolist()})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()

# A client asks for two thousand people.
some = test.X.head(2000)
columns = {name: some[name].astype(object).where(some[name].notna(), None).tolist() for name in some}
request = urllib.request.Request(f"http://127.0.0.1:{server.server_port}", data=json.dumps(columns).encode())
with urllib.request.urlopen(request) as response:
    answer = json.load(response)
server.shutdown()
print("first answers:", [round(p, 3) for p in answer["probability"][:4]])
ours = model.predict_proba(some)[:, 1]
difference = np.abs(np.array(answer["probability"]) - ours).max()
print("the server and the package agree to five digits:", bool(difference < 1e-5))


def plot(axes):
    axes.plot(ours, answer["probability"], ".", markersize=4, label="2,000 people")
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="the same")


draw(options.out, plot, xlabel="probability from the package", ylabel="probability from the server", title="One model, two runtimes")
