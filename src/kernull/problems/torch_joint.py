r"""The joint problem on torch: tasks of like size are factorised together, in batches.

Many small tasks leave a GPU idle when they are solved one by one. Here the kernels of tasks of
like size lie in one tensor, padded with zeros to the largest of them. A padded row has nothing but
its ridge and a right-hand side of zero, so that its coefficient is zero and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from kernull._typing import Array
from kernull.errors import InvalidKernelError
from kernull.problems.fisher import FisherProblem
from kernull.problems.joint import JointFisherProblem, Share
from kernull.stacks.torch_tiled import TorchDenseStack

#: Tasks of at least this share of the largest one's rows join its batch.
LIKE_SIZE = 0.8


class BatchedJointFisherProblem(JointFisherProblem):
    """`JointFisherProblem` whose tasks' kernels are tensors, evaluated batch by batch.

    Each task has a `TorchDenseStack` of one device and type. Kernels are kept in their own type;
    systems are formed, factorised and solved in float64, as on the host. What comes back are NumPy
    arrays of a few numbers per row.
    """

    #: Solvers that factorise are the fast ones here, whatever the stack offers.
    batched = True

    def __init__(self, tasks: Sequence[FisherProblem]) -> None:
        parts = [copy(task) for task in tasks]
        self.batches = tuple(_Batch.of(parts, index) for index in _like_sizes(parts))
        super().__init__(parts)

    def _shares(self, weights: Array) -> tuple[list[Share], list[Array]]:
        """One batched factorisation for tasks of like size."""
        found = [batch.evaluate(weights) for batch in self.batches]
        self.n_evaluations += len(self.tasks)
        shares = [share for share, _ in found]
        u, quadratic = (sum(getattr(s, name) for s in shares) for name in ("u", "quadratic"))
        self._check_sign(u, quadratic)
        return shares, self._join([coef for _, coef in found])

    def solutions(self, weights: Array) -> list[tuple[Array, Array]]:
        """Exact a(b) and the diagonal of the scaled inverse, for every task."""
        weights = np.asarray(weights, dtype=float)
        solved = [batch.solution(weights) for batch in self.batches]
        self.n_evaluations += len(self.tasks)
        coefs, diagonals = ([part[k] for part in solved] for k in (0, 1))
        return list(zip(self._join(coefs), self._join(diagonals), strict=True))

    def _join(self, values: Sequence[Any]) -> list[Array]:
        """Padded values of the batches as one array per task, in the order of the tasks."""
        out: list[Any] = [None] * len(self.tasks)
        for batch, padded in zip(self.batches, values, strict=True):
            for row, index in zip(padded.cpu().numpy(), batch.tasks, strict=True):
                out[index] = row[: self.tasks[index].n]
        return out


@dataclass(frozen=True, eq=False)
class _Batch:
    """Tasks of like size in tensors of their own, padded to m rows."""

    tasks: tuple[int, ...]
    """Positions of the tasks in the joint problem."""
    kernels: Any
    """(J, B, m, m), in the scaled coordinates of `FisherProblem`."""
    ridge: Any
    """(B,)"""
    target: Any
    """(B, m), scaled, zero on padding."""
    row_scale: Any
    """(B, m)"""

    @classmethod
    def of(cls, problems: list[FisherProblem], index: Sequence[int]) -> _Batch:
        """Move tasks into one batch; their stacks become views of it."""
        first: Any = problems[index[0]].stack
        J, m = first.J, max(problems[i].n for i in index)
        like = {"dtype": torch.float64, "device": first.device}
        kernels = torch.zeros((J, len(index), m, m), dtype=first.dtype, device=first.device)
        target, row_scale = torch.zeros((2, len(index), m), **like)
        row_scale += 1.0
        for b, i in enumerate(index):
            task = problems[i]
            stack: Any = task.stack
            n = task.n
            own = kernels[:, b, :n, :n]
            own.copy_(stack.kernels)
            own *= torch.as_tensor(stack.scale, device=own.device).to(own.dtype)[:, None, None]
            target[b, :n] = torch.as_tensor(task.target, **like)
            if task.row_scale is not None:
                row_scale[b, :n] = torch.as_tensor(task.row_scale, **like)
            task.stack = TorchDenseStack(own)
        ridge = torch.tensor([problems[i].ridge for i in index], **like)
        return cls(tuple(index), kernels, ridge, target, row_scale)

    def _factorise(self, weights: Array) -> Any:
        """Lower factors of the scaled rho I + K_b, of shape (B, m, m)."""
        J, B, m, _ = self.kernels.shape
        b = torch.as_tensor(weights, device=self.kernels.device).to(self.kernels.dtype)
        A = (b @ self.kernels.reshape(J, -1)).reshape(B, m, m).double()
        A *= self.row_scale[:, :, None]
        A *= self.row_scale[:, None, :]
        A.diagonal(dim1=1, dim2=2).add_(self.ridge[:, None])
        factor, info = torch.linalg.cholesky_ex(A)
        failed = info.nonzero()
        if len(failed):
            raise InvalidKernelError(
                f"kernels: the weighted sum of the kernels of task {self.tasks[int(failed[0])]} "
                "plus its ridge is not positive definite. Check the kernels, or raise delta."
            )
        return factor

    def _solve(self, factor: Any) -> Any:
        return torch.cholesky_solve(self.target[:, :, None], factor)[:, :, 0]

    def evaluate(self, weights: Array) -> tuple[Share, Any]:
        """What the tasks add, and their coefficients, from one factorisation and one pass."""
        factor = self._factorise(weights)
        a = self._solve(factor)
        V = (self.row_scale * a).to(self.kernels.dtype)
        # matmul over (J, B) reads the kernels once; einsum would copy them first.
        Ka = torch.matmul(self.kernels, V[None, :, :, None])[..., 0].double() * self.row_scale
        u = torch.einsum("jbm,bm->j", Ka, a).cpu().numpy()
        b = torch.as_tensor(weights, device=Ka.device)
        residual = self.target - self.ridge[:, None] * a - torch.einsum("j,jbm->bm", b, Ka)
        linear = float((self.target * a).sum())
        quadratic = float((self.ridge * (a * a).sum(dim=1)).sum())
        slack = float(((residual * residual).sum(dim=1) / self.ridge).sum())
        value = 2.0 * linear - quadratic - float(weights @ u) + slack

        def second_order() -> Array:
            """Sum over the tasks of M_jk = (L^-1 K_j a)'(L^-1 K_k a)."""
            Z = torch.linalg.solve_triangular(factor, Ka.permute(1, 2, 0), upper=False)
            return np.asarray(torch.einsum("bmj,bmk->jk", Z, Z).cpu().numpy())

        return Share(value, linear, quadratic, u, second_order), self.row_scale * a

    def solution(self, weights: Array) -> tuple[Any, Any]:
        """Coefficients and diagonals of the scaled inverses, each of shape (B, m)."""
        factor = self._factorise(weights)
        a = self._solve(factor)
        eye = torch.eye(factor.shape[1], dtype=factor.dtype, device=factor.device)
        inverse = torch.linalg.solve_triangular(factor, eye, upper=False)
        return self.row_scale * a, inverse.square().sum(dim=1)


def _like_sizes(tasks: Sequence[FisherProblem]) -> list[list[int]]:
    """Tasks in groups of like size, largest first."""
    groups: list[list[int]] = []
    largest = 0
    for i in sorted(range(len(tasks)), key=lambda i: -tasks[i].n):
        if not groups or tasks[i].n < LIKE_SIZE * largest:
            largest = tasks[i].n
            groups.append([])
        groups[-1].append(i)
    return groups
