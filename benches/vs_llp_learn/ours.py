"""One training: `ours.py DATA METHOD` prints seconds and test AUC."""

import json
import sys
import time

import numpy as np
from sklearn.metrics import roc_auc_score

from easyllp import LLPClassifier

data, method = np.load(sys.argv[1]), sys.argv[2]
size = int(np.bincount(data["bags"]).max())
model = {
    # A bag a step, as DLLP has it.
    "DLLP": LLPClassifier("proportion-matching", "mlp:100", epochs=10, lr=0.001, batch_size=size, holdout=0),
    "EM": LLPClassifier("llp-em", l2=1 / len(data["bags"]), method_params={"rounds": 10}, holdout=0),
}[method]
begun = time.perf_counter()
model.fit(data["X"], data["proportions"], bags=data["bags"])
seconds = time.perf_counter() - begun
print(json.dumps({"seconds": seconds, "auc": roc_auc_score(data["test_y"], model.predict_proba(data["test_X"])[:, 1])}))
