"""The GPU benchmark of MNIST, on small tensors on the CPU."""

import csv
import queue
import threading

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from tests.needs import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)

from benchmarks.mnist_gpu import crew, peers  # noqa: E402
from benchmarks.mnist_gpu.crew import Report, Task  # noqa: E402
from benchmarks.mnist_gpu.features import scale_view, squared_distances  # noqa: E402
from benchmarks.mnist_gpu.methods import MACHINES, REGIONS, run_scaling  # noqa: E402
from benchmarks.mnist_gpu.protocol import Digit  # noqa: E402
from experiments.e8 import full_section  # noqa: E402

pytestmark = pytest.mark.torch


def two_views(n, seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, 3)), rng.normal(size=(n, 2)) ** 3]


@pytest.mark.parametrize("copies", [0, 3])
def test_lof_is_that_of_scikit_learn(copies):
    train, new = two_views(40, 0), two_views(25, 1)
    for view in train:  # a row's copies are its neighbours, the row itself is not
        view[1 : 1 + copies] = view[0]
    A, B = ([torch.as_tensor(v) for v in part] for part in (train, new))
    between = sum(squared_distances(v, v) for v in A)
    between[: copies + 1, : copies + 1] = 0.0  # exactly, as scikit-learn's trees have them
    across = sum(squared_distances(w, v) for v, w in zip(A, B, strict=True))
    counts = (5, 10, 60)  # the last: more than there are rows
    found = peers.lof_scores(between, across, counts)
    for k, scores in zip(counts, found, strict=True):
        oracle = LocalOutlierFactor(n_neighbors=min(k, 39), novelty=True).fit(np.hstack(train))
        want = oracle.score_samples(np.hstack(new))
        np.testing.assert_allclose(scores.numpy(), want, rtol=1e-9)


def small_problem():
    """Labels of 420 images, the last 120 for testing, and two views that tell the digits apart."""
    rng = np.random.default_rng(3)
    labels = np.concatenate([np.repeat(np.arange(10), 30), np.arange(120) % 10])
    centres = rng.normal(size=(10, 6))
    rows = centres[labels] + 0.5 * rng.normal(size=(420, 6))
    views = {name: torch.as_tensor(part) for name, part in (("a", rows[:, :4]), ("b", rows[:, 2:]))}
    return labels, views


@pytest.fixture(scope="module")
def found():
    """Rows of every scaling and task on one digit."""
    labels, views = small_problem()
    digit = Digit(4, labels, 300, None)
    tags = ("", MACHINES)
    tables = [
        run_scaling(digit, views, scaling, "cpu", set(), tag)[0]
        for scaling in ("standard", "whiten")
        for tag in tags
    ]
    return digit, views, [{"target": 4, **row} for rows in tables for row in rows]


def test_new_peers_stand_in_the_table_with_the_scores_of_scikit_learn(found):
    digit, views, rows = found
    for scaling in ("standard", "whiten"):
        pairs = [scale_view(X, digit.train, digit.rest, scaling) for X in views.values()]
        A, B = (np.hstack([pair[i].numpy() for pair in pairs]) for i in (0, 1))
        m = len(digit.validation)
        (row,) = [r for r in rows if (r["method"], r["scaling"]) == ("IsolationForest", scaling)]
        model = IsolationForest(n_estimators=300, random_state=4).fit(A.astype(np.float32))
        scores = model.score_samples(B.astype(np.float32))
        assert row["auc"] == pytest.approx(roc_auc_score(digit.test_labels, scores[m:]), abs=1e-12)
        (row,) = [r for r in rows if (r["method"], r["scaling"]) == ("LOF", scaling)]
        reached = {}
        for k in peers.LOF_NEIGHBOURS:
            model = LocalOutlierFactor(n_neighbors=min(k, len(A) - 1), novelty=True).fit(A)
            scores = model.score_samples(B)
            reached[f"k={k}"] = [
                roc_auc_score(y, s)
                for y, s in (
                    (digit.validation_labels, scores[:m]),
                    (digit.test_labels, scores[m:]),
                )
            ]
        best = max(reached, key=lambda name: reached[name][0])
        # Distances in single precision may swap one of 810 (validation) or 1,296 (test) pairs.
        assert row["validation_auc"] == pytest.approx(reached[best][0], abs=2e-3)
        assert row["auc"] == pytest.approx(reached[row["choice"]][1], abs=2e-3)


def test_skipped_peers_are_left_out():
    labels, views = small_problem()
    rows, _ = run_scaling(
        Digit(4, labels, 300, None), views, "standard", "cpu", {"lof", "forest", "kpca", "gp"}
    )
    assert {"kNN", "Mahalanobis"} <= {row["method"] for row in rows}
    assert not {"LOF", "IsolationForest"} & {row["method"] for row in rows}


def test_page_shows_peers_and_the_machines_of_every_scaling(found, tmp_path):
    rows = found[2]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with (tmp_path / "full.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    page = full_section(tmp_path)
    cells = {
        line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:5]]
        for line in page.splitlines()
        if line.count("|") == 6
    }
    for method in ("LOF", "IsolationForest", "kNN", "OneClassSVM"):
        assert cells[method][0] == "peers"
    for method in ("OneClassSVM", "MK-SVDD", "Slim-MK-OCSVM"):
        assert all(50 < float(v.strip("*").split()[0]) <= 100 for v in cells[method][1:])


def test_machines_of_further_scalings_come_last():
    todo = crew.agenda([0, 1], ["x", "y", "z"], regions=True, machines=True)
    assert [task[1:] for task in todo[::2]] == [
        ("x", ""),
        ("x", REGIONS),
        ("y", ""),
        ("z", ""),
        ("x", MACHINES),
        ("y", MACHINES),
        ("z", MACHINES),
    ]
    assert len(set(todo)) == len(todo) == 14
    without = crew.agenda([0, 1], ["x", "y"], regions=False, machines=False)
    assert without == [Task(d, s) for s in "xy" for d in (0, 1)]


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), 2),
        (RuntimeError("cusolver error: CUSOLVER_STATUS_ALLOC_FAILED"), 2),
        (RuntimeError("singular"), 1),
        (ValueError("CUDA out of memory"), 1),
    ],
)
@pytest.mark.parametrize("recovers", [False, True])
def test_full_memory_puts_a_task_back_once(monkeypatch, error, tries, recovers):
    order = []

    def run(part, used, scaling, device, skip, tag, threads):
        order.append(scaling)
        if scaling == "bad" and not (recovers and order.count("bad") > 1):
            raise error
        return [{"method": scaling}], {}

    monkeypatch.setattr(crew, "run_scaling", run)
    labels, _ = small_problem()
    job = {"labels": labels, "n_train": 300, "per_digit": None}
    job |= {"device": "cpu", "skip": set(), "threads": 1}
    tasks, done = queue.Queue(), queue.Queue()
    todo = [Task(0, "bad"), Task(0, "good"), Task(0, "fine")]

    def member():
        while (task := tasks.get()) is not None:
            done.put(crew.attempt(job, {}, task))

    worker = threading.Thread(target=member)
    worker.start()
    told = list(crew.reports(todo, tasks, done, 1, 1e9))
    worker.join()
    assert order == ["bad", "good", "fine", "bad"][: 2 + tries]
    assert sorted(report.task for report in told) == sorted(todo)
    (bad,) = [report for report in told if report.task.scaling == "bad"]
    assert all(isinstance(report, Report) for report in told)
    if recovers and tries == 2:
        assert bad.rows == [{"target": 0, "method": "bad"}]
        assert not bad.problem
    else:
        assert bad.rows == []
        assert bad.problem == repr(error)


def test_time_runs_out():
    with pytest.raises(queue.Empty):
        list(crew.reports([Task(0, "x")], queue.Queue(), queue.Queue(), 1, 0.0))
