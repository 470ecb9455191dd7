"""The golden numbers of reference.rs, from NumPy, SciPy and scikit-learn: python reference.py

Data by formula, so that both sides have the same: 24 rows, 2 features, bags of 4, of 3 to 5 rows.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

i = np.arange(24)
x = np.c_[np.sin(1.3 * i), np.cos(0.7 * i * i)].astype(np.float32).astype(float)
y = ((np.sin(2.1 * i) + x[:, 0]) > 0).astype(int)
bag = np.array([0] * 3 + [1] * 5 + [2] * 4 + [3] * 4 + [4] * 3 + [5] * 5)

# Row labels: scikit-learn minimises C·Σ loss + ½‖w‖², we the mean loss + l2/2·‖w‖², so C = 1/(N·l2).
l2 = 0.05
clf = LogisticRegression(C=1 / (24 * l2), tol=1e-12, max_iter=10000).fit(x, y)
print("labels  ", clf.coef_[0], clf.intercept_)

# EasyLLP, centred, equal bag weights.
k = np.bincount(bag)
alpha = np.bincount(bag, y) / k
N, n, p = len(y), len(k), y.mean()
A = (p + (N - 1) / (n - 1) * (alpha - p))[bag]
x1 = np.c_[x, np.ones(N)]


def objective(w):
    f = x1 @ w
    pen = np.array([l2, l2, 0])
    return np.logaddexp(0, f).mean() - (A * f).mean() + 0.5 * (pen * w * w).sum(), x1.T @ (
        1 / (1 + np.exp(-f)) - A
    ) / N + pen * w


w = minimize(objective, np.zeros(3), jac=True, method="BFGS", options=dict(gtol=1e-10)).x
print("easyllp ", w)

# Log loss of scores f = x₀ − 0.5 x₁ from the bags, by the formulas of design: value, standard error, interval.
f = (x[:, 0] - 0.5 * x[:, 1]).astype(np.float32).astype(float)
q = 1 / (1 + np.exp(-f))
loss = np.c_[np.logaddexp(0, f), np.logaddexp(0, -f)]
own = q * loss[:, 1] + (1 - q) * loss[:, 0]
delta = loss[:, 1] - loss[:, 0]
S, Q, L = np.bincount(bag, delta), np.bincount(bag, q), np.bincount(bag, own)
r = alpha - Q / k
rhat, dbar, lbar = (k * r).sum() / N, delta.mean(), own.mean()
T = (N - 1) / (N * (n - 1)) * (r - rhat) * (S - k * dbar)
theta = lbar + rhat * dbar + T.sum()
phi = (L - k * lbar + dbar * (k * r - k * rhat) + rhat * (S - k * dbar)) / N + T - T.mean()
se = np.sqrt(n / (n - 1) * (phi**2).sum())
reach = student.ppf(0.975, n - 1) * se
print("log loss", theta, se, theta - reach, theta + reach, "true", loss[i, y].mean())

# Brier by the squared form.
W = (N - 1) / (N * (n - 1)) * k * (r - rhat) ** 2
print("Brier   ", rhat**2 + W.sum(), "true", ((y - q) ** 2).mean())

# Brier as a mean, with the probability as control: the better form for a model as weak as one with a tenth of these scores.
q = 1 / (1 + np.exp(-f / 10))
r = alpha - np.bincount(bag, q) / k
rhat = (k * r).sum() / N
delta = 1 - 2 * q
S = np.bincount(bag, delta)
T = (N - 1) / (N * (n - 1)) * (r - rhat) * (S - k * delta.mean())
theta = (q**2 + q * delta).mean() + rhat * delta.mean() + T.sum()
print("Brier/10", theta, "true", ((y - q) ** 2).mean())
