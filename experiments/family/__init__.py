"""Relatives of the paper's problem that were compared with it: see the pages of their results.

Every module names its source. The table features x widths of `experiments.e4_family`, (r, p) MK-FN,
needs none of its own (`kernull.MixedBall`): Arashloo, *Matrix-Regularized One-Class
Multiple Kernel Learning for Unseen Face Presentation Attack Detection*, IEEE Transactions on
Information Forensics and Security (2021). The paper itself (arXiv:2008.08642) names the mixed norm
as future work.
"""
