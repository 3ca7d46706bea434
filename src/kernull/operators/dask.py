"""The stack on a Dask cluster: pairs of row blocks are tasks (extra ``dask``).

The rows are scattered to all workers once; a pass sends the vectors (n x k) to each of them and
brings back J x n x k sums once for every block that a row meets. Tasks are pure, so the scheduler
runs those of a lost worker again elsewhere; where all copies of the rows are lost, they are
scattered anew and the pass is repeated.
"""

from __future__ import annotations

import math
from concurrent.futures import CancelledError
from typing import Any

import numpy as np

from kernull._typing import Array
from kernull.errors import ClusterError, need
from kernull.operators.tiled import Side, TiledStack, Tiles, blocks_of, tile_pair, tile_products
from kernull.views.kernel_set import KernelSet

#: Tasks a thread of the cluster: enough to balance, few enough to keep the network idle.
TASKS_A_THREAD = 16
#: Rows below which a block is not worth a task.
MIN_BLOCK = 256
#: How often a pass is begun again after the cluster lost the rows.
ATTEMPTS = 3
#: Seconds after which a task that has not ended is looked after.
POLL = 3.0


class DistributedStack(TiledStack):
    """J kernels over n rows, evaluated by the workers of a Dask cluster.

    The cluster is that of ``client``, the active one by default; ``timeout`` is in seconds, for a
    first worker to come. Rows and diagonals are few values, and evaluated here.
    """

    def __init__(
        self,
        kernel_set: KernelSet,
        *,
        client: Any = None,
        scale: Array | None = None,
        dtype: Any = np.float64,
        timeout: float = 30.0,
    ) -> None:
        super().__init__(kernel_set, scale=scale, dtype=dtype)
        self.client, self.timeout = _client(client), timeout
        tasks = TASKS_A_THREAD * self._wait_for_workers()
        blocks = math.ceil((math.sqrt(8 * tasks + 1) - 1) / 2)  # b (b + 1) / 2 >= tasks
        self._blocks = blocks_of(kernel_set.n, max(MIN_BLOCK, -(-kernel_set.n // blocks)))
        self._rows: Any = None

    def _like(self, kernel_set: KernelSet, left: KernelSet | None, scale: Array) -> Any:
        if left is not None:  # kernels with other rows are few too
            return TiledStack(kernel_set, left=left, scale=scale, dtype=self.dtype)
        options = {"client": self.client, "dtype": self.dtype, "timeout": self.timeout}
        return DistributedStack(kernel_set, scale=scale, **options)

    def _passes(self, V: Array) -> Array:
        from distributed import KilledWorker

        for attempt in range(ATTEMPTS):
            try:
                return self._one_sweep(V)
            except (CancelledError, KilledWorker, OSError) as error:
                # The scheduler mends what it can; this is the loss of all copies of the rows.
                self._rows = None
                if attempt == ATTEMPTS - 1:
                    raise ClusterError(
                        f"the cluster lost its workers {ATTEMPTS} times during one pass over the "
                        "kernels; look at the workers' logs (memory?), then fit again."
                    ) from error
        raise AssertionError("unreachable")

    def _one_sweep(self, V: Array) -> Array:
        client = self.client
        self._wait_for_workers()
        if self._rows is None:
            tiles = Tiles(self.kernel_set.take(slice(0)), self.dtype)  # kernels alone
            everywhere = Tiles(self.kernel_set, self.dtype)
            payload = (tiles, everywhere.left(), everywhere.right())
            self._rows = client.scatter(payload, broadcast=True, hash=False)
        vectors = client.scatter(V, broadcast=True, hash=False)
        # Pairs on the diagonal are half the work: last, they fill what the others leave idle.
        pairs = [(a, b) for i, a in enumerate(self._blocks) for b in self._blocks[i + 1 :]]
        pairs += [(a, a) for a in self._blocks]
        tasks = [client.submit(_pair, self._rows, vectors, a, b, pure=False) for a, b in pairs]
        out = np.zeros((self.J, self.n, V.shape[-1]))
        try:
            # In the order of submission: the sum does not depend on who was faster.
            for i, (a, b) in enumerate(pairs):
                left, right = self._result(tasks[i], vectors)
                tasks[i] = None  # let the cluster forget it
                out[:, a] += left
                if right is not None:
                    out[:, b] += right
        finally:
            client.cancel([task for task in tasks if task is not None])
        return out

    def _result(self, task: Any, vectors: Any) -> Any:
        """The result of a task, unless what it works on is gone for good."""
        from distributed import TimeoutError as DaskTimeoutError

        while True:
            try:
                return task.result(timeout=POLL)
            except (DaskTimeoutError, TimeoutError):
                # A task whose scattered data died with their last worker would wait for ever.
                holders = self.client.who_has([self._rows, vectors])
                if len(holders) < 2 or not all(holders.values()):
                    raise CancelledError from None

    def _wait_for_workers(self) -> int:
        """Number of threads of the cluster, once it has any."""
        from distributed import TimeoutError as DaskTimeoutError

        if self.client.status in ("closing", "closed"):
            raise ClusterError(
                f"storage='dask': the client {self.client!r} is closed. Create another, and pass "
                "fit(..., client=client) or leave it to be found."
            )
        try:
            self.client.wait_for_workers(1, timeout=self.timeout)
        except (DaskTimeoutError, TimeoutError):
            raise ClusterError(
                f"storage='dask': the cluster {self.client!r} has no workers after "
                f"{self.timeout:g} s. Start some (dask worker ADDRESS, or cluster.scale(2)), or "
                "use storage='tiled' on this machine."
            ) from None
        return max(1, int(sum(self.client.nthreads().values())))


def _pair(
    payload: tuple[Tiles, Side, Side], V: Array, a: slice, b: slice
) -> tuple[Array, Array | None]:
    """The products of one pair of row blocks, on a worker."""
    tiles, left, right = payload
    rows, columns = left.part(a), right.part(b)
    if a == b:
        return tile_products(tiles, rows, columns, V[..., a, :], symmetric=True, workers=1), None
    return tile_pair(tiles, rows, columns, V[..., a, :], V[..., b, :])


def _client(client: Any) -> Any:
    wanted = "storage='dask' needs Dask distributed: pip install 'kernull[dask]'."
    default_client = need("distributed", wanted).default_client
    if client is not None:
        return client
    try:
        return default_client()  # type: ignore[no-untyped-call,unused-ignore]
    except ValueError:
        raise ClusterError(
            "storage='dask': there is no active Dask client. Create one "
            "(dask.distributed.Client(...)), or pass fit(..., client=client)."
        ) from None
