r"""
Why learned weights drift to wide kernels
=========================================

Weights follow :math:`u_j = a'K_j a`, and that is largest for the kernel that finds all rows alike.
Three remedies: one good width per view (the default), kernels on a common scale, rows of reference.
"""

# %%
# One grower's wines, and rbf kernels of nine widths on all columns. ``p=1`` lets them compete.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics import roc_auc_score

from kernull import MultiKernelFisherNull

X, label = load_wine(return_X_y=True)
normal, others = X[label == 1], X[label != 1]
train, fresh = normal[::2], normal[1::2]
rows = np.concatenate([fresh, others])
truth = np.r_[np.ones(len(fresh)), np.zeros(len(others))]
widths = 2.0 ** np.arange(-3, 1.5, 0.5)

settings = {
    "as in the paper": {"normalize": "none"},
    "normalize=0.5": {"normalize": 0.5},
    'normalize="offdiagonal"': {"normalize": "offdiagonal"},
    'reference="permuted"': {"normalize": "none", "reference": "permuted"},
}


def fitted(**options):
    """A model whose kernels differ in width alone."""
    model = MultiKernelFisherNull(
        decision="sum", scaling="standard", widths=widths, p=1, delta=1e-2, **options
    )
    return model.fit(train)


# %%
# :math:`u_j` by width, for the coefficients of the kernels' mean: where the solver starts and which
# way it is pulled. Plain kernels pull to the widest. Divided by the mean of their off-diagonal
# entries :math:`m_j`, wide kernels are all alike, and narrow ones win by their diagonals, which are
# now :math:`1/m_j`: that over-corrects. With rows of reference, the coefficients have two signs,
# a constant kernel has :math:`u = (\sum_i a_i)^2` close to nothing, and the widest is free no more.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="tight")
for name, options in settings.items():
    model = fitted(**options)
    kernels = model.kernel_set_.stack().kernels * model.scale_[:, None, None]
    target = np.ones(len(model.coef_))
    target[len(train) :] = 0.0
    a = np.linalg.solve(kernels.mean(axis=0) + model.ridge_ * np.eye(len(target)), target)
    u = np.einsum("i,jik,k->j", a, kernels, a)
    left.plot(widths, u / u.max(), "o-", label=name)
    right.plot(widths, model.weights_, "o-", label=name)
    auc = roc_auc_score(truth, model.score_samples(rows))
    print(f"{name:26} AUC {100 * auc:.1f}")
for axes, title in ((left, "u, relative to the largest"), (right, "learned weights, p = 1")):
    axes.set(xscale="log", xlabel="width / mean distance", title=title)
    axes.set_xticks([1 / 8, 1 / 4, 1 / 2, 1, 2], ["1/8", "1/4", "1/2", "1", "2"])
    axes.minorticks_off()
left.legend(fontsize="small")

# %%
# The default asks for no competition of widths. It takes one width per view and scaling, the usual
# distance to the nearest neighbour, and lets weights choose among views and scalings, where kernels
# are about equally smooth.
model = MultiKernelFisherNull().fit(train)
print(model.scaling_, model.widths_, model.weights_.round(2))
print(f"{'default':26} AUC {100 * roc_auc_score(truth, model.score_samples(rows)):.1f}")
plt.show()
