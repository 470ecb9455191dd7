"""The same with llp-learn, in its own environment: `peer.py DATA METHOD`."""

import json
import sys
import time

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

data, method = np.load(sys.argv[1]), sys.argv[2]
X, bags, of_bag = data["X"], data["bags"], data["of_bag"].astype(np.float32)
if method == "DLLP":
    import torch
    from llp_learn.dllp import DLLP

    model = DLLP(lr=0.001, n_epochs=10, model_type="simple-mlp", hidden_layer_sizes=(100,), n_jobs=0, random_state=1)
    begun = time.perf_counter()
    model.fit(X, bags, of_bag)
    seconds = time.perf_counter() - begun
    model.model.eval()
    with torch.no_grad():
        scores = model.model(torch.from_numpy(data["test_X"])).softmax(dim=1)[:, 1].numpy()
else:
    from llp_learn.em import EM

    model = EM(LogisticRegression(max_iter=1000), max_iter=10, random_state=1)
    begun = time.perf_counter()
    model.fit(X, bags, of_bag)
    seconds = time.perf_counter() - begun
    scores = model.model.decision_function(data["test_X"])
print(json.dumps({"seconds": seconds, "auc": roc_auc_score(data["test_y"], scores)}))
