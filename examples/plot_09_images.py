"""
Odd ones out in a folder of photographs
=======================================

Four pretrained networks look at each photograph, each is a view, and kernull learns how much each
counts. No label and no training of a network is needed: a folder of what is normal is enough.

This example needs ``pip install kernull[vision]``, the networks as ONNX files in the folder that
the environment variable ``KERNULL_WEIGHTS`` names, and the Flowers17 photographs, whose loader is
part of the repository: run it from the root of a clone, ``python -m examples.plot_09_images``.
"""

# %%
# Two folders: 60 photographs of daffodils that we know, and new ones, most of them daffodils. One
# photograph of each of the 16 other flowers has got among them.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from experiments.datasets import load_flowers17_images
from kernull import ContributionsDisplay, ImageViews, MultiKernelFisherNull
from kernull.metrics import auc
from kernull.views.images import image_paths

scratch = tempfile.TemporaryDirectory()
known, new = Path(scratch.name) / "known", Path(scratch.name) / "new"
known.mkdir()
new.mkdir()
daffodils = [flower.image for flower in load_flowers17_images(labels=[0])]
for i, j in enumerate(np.random.default_rng(0).permutation(len(daffodils))):
    folder = known if i < 60 else new
    daffodils[j].save(folder / f"daffodil_{i:02d}.jpg", quality=95)
for flower in load_flowers17_images(labels=range(1, 17)):
    if (flower.number - 1) % 80 == 0:
        flower.image.save(new / f"stray_{flower.label:02d}.jpg", quality=95)

# %%
# From a folder to a table with one view per network. Features are kept in the cache: next time,
# only photographs that are new go through the networks.
networks = ["alexnet", "squeezenet1_1", "mobilenet_v2", "efficientnet_lite0"]
images = ImageViews(networks, cache=Path(scratch.name) / "features")
X = images.transform(known)
print(X.shape, images.views_)

# %%
# Learn the daffodils, without a setting: each network is looked at in three scalings.
model = MultiKernelFisherNull(views=images.views_).fit(X)
for name, weight in zip(model.kernel_names_, model.weights_, strict=True):
    print(f"{name:>20}  {weight:.2f}")

# %%
# Judge the new folder, the most unusual photograph first.
paths = image_paths(new)
X_new = images.transform(new)
scores, p_values = model.score_samples(X_new), model.p_values(X_new)
why = model.explain(X_new)
order = np.argsort(scores)
for i in order[:5]:
    print(f"{paths[i].name}: {why.words(i)}\n")

stray = np.array([path.name.startswith("stray") for path in paths])
truth, flagged = np.where(stray, -1, 1), model.predict(X_new) == -1
print(f"flagged: {flagged[stray].sum()} of {stray.sum()} strays, ", end="")
print(f"{flagged[~stray].sum()} of {(~stray).sum()} daffodils")
for name, columns in images.views_.items():
    alone = MultiKernelFisherNull(scaling="none").fit(X[:, columns])
    print(f"{name:>20}: AUC {auc(truth, alone.score_samples(X_new[:, columns])):.3f}")
print(f"{'all four':>20}: AUC {auc(truth, scores):.3f}")

# %%
# A contact sheet of the most unusual, with the network that was surprised most. A red frame is an
# alarm.
figure, axes = plt.subplots(3, 6, figsize=(11, 6.2), layout="constrained")
for ax, i in zip(axes.flat, order, strict=False):
    photograph = Image.open(paths[i])
    side = min(photograph.size)
    left, top = (photograph.width - side) // 2, (photograph.height - side) // 2
    ax.imshow(photograph.crop((left, top, left + side, top + side)).resize((180, 180)))
    ax.set_title(f"{paths[i].stem}, p = {p_values[i]:.2f}", fontsize=8)
    ax.set_xlabel(why.view_names[why.ranking(i)[0]], fontsize=8)
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(color="tab:red" if flagged[i] else "lightgray", linewidth=3)
figure.suptitle("The most unusual of the new photographs")

# %%
# The reasons for the first of them: what each network contributes to its score, and what it
# contributes to that of a normal photograph.
ContributionsDisplay.from_explanation(model.explain(X_new[order[:1]]))
plt.show()
scratch.cleanup()
