"""
Which view caused this alarm?
=============================

The square of the score is a sum over views, so an alarm can be taken apart exactly, and a view that
is missing can be left out exactly.
"""

# %%
# Six views of handwritten digits would need a download, so four views of wine must do: one
# grower's wines are normal.
import matplotlib.pyplot as plt
import numpy as np

from kernull import ContributionsDisplay, MultiKernelFisherNull, join_views
from kernull.datasets import load_wine_views

data = load_wine_views()
X, views = join_views(data.views)
y = data.one_class(target=0)
normal = X[y == 1]
train, fresh = normal[:45], normal[45:]
model = MultiKernelFisherNull(views=views, false_alarm_rate=0.1).fit(train)

# %%
# A wine that is normal but for one view, which another grower's wine lent it.
row = fresh[:1].copy()
swapped = list(views)[1]
row[:, views[swapped]] = X[y == -1][30, views[swapped]]

why = model.explain(row)
print(f"(the view that was swapped: {swapped})")
print(why.words())

# %%
# The same as a plot: bars are this row, dots and whiskers what is usual among normal rows that the
# model did not see.
ContributionsDisplay.from_explanation(why)

# %%
# ... and as a table, which adds up to minus the square of the score.
for record in why.table():
    print(
        f"{record['view']:>12}  {record['contribution']:6.3f}  typical {record['typical']:6.3f}  "
        f"surprise {record['surprise']:6.1f}"
    )
score = model.score_samples(row)[0]
print(f"{'sum':>12}  {why.by_view.sum():6.3f}  minus the score squared {-(score**2):.3f}")

# %%
# Its sensor is dead? Score, threshold and p-value then come from the other views, exactly: the row
# is normal.
row[:, views[swapped]] = np.nan
print(model.explain(row, missing_views=swapped).words())
ContributionsDisplay.from_estimator(model, row, missing_views=swapped)
plt.show()
