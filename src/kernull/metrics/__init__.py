r"""Error rates and rank statistics of one-class scores.

One convention holds for the whole package: labels are ``+1`` (target, bona fide) and ``-1``
(outlier, attack), a higher score means more normal, and a sample is *accepted* when
``score >= threshold``. With :math:`s_i` the scores, the two error rates at threshold :math:`t` are

.. math::

    \mathrm{FRR}(t) = \frac{\#\{i : y_i = +1,\ s_i < t\}}{n_+}, \qquad
    \mathrm{FAR}(t) = \frac{\#\{i : y_i = -1,\ s_i \ge t\}}{n_-}.

BPCER is FRR on bona fide presentations and APCER is FAR on the attacks of one instrument.
"""

from __future__ import annotations

from kernull.metrics.attacks import AttackErrors, acer, apcer, bpcer, bpcer_at_apcer, g_mean, hter
from kernull.metrics.curves import EqualErrorRate, auc, eer, threshold_at_eer

__all__ = [
    "AttackErrors", "EqualErrorRate", "acer", "apcer", "auc", "bpcer", "bpcer_at_apcer", "eer",
    "g_mean", "hter", "threshold_at_eer",
]  # fmt: skip
