"""The crew: processes that take tasks from one queue and put reports into another."""

from __future__ import annotations

import contextlib
import gc
import os
import queue
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.mnist_gpu.methods import MACHINES, REGIONS, run_scaling
from benchmarks.mnist_gpu.output import START, say
from benchmarks.mnist_gpu.protocol import Digit


class Task(NamedTuple):
    """All methods of one kind (the tag) on one digit with one scaling."""

    digit: int
    scaling: str
    tag: str = ""


class Report(NamedTuple):
    """What became of a task."""

    task: Task
    rows: list[dict[str, Any]]
    weights: Any
    seconds: float
    problem: str
    no_memory: bool


def agenda(
    digits: Sequence[int], scalings: Sequence[str], *, regions: bool, machines: bool
) -> list[Task]:
    """Tasks in order: what is finished when time runs out should say most."""
    first, *further = scalings
    todo = [Task(d, first) for d in digits]
    todo += [Task(d, first, REGIONS) for d in digits if regions]
    todo += [Task(d, s) for s in further for d in digits]
    todo += [Task(d, s, MACHINES) for s in scalings for d in digits if machines]
    return todo


def out_of_memory(error: Exception) -> bool:
    """Whether the GPU's memory was full (its linear algebra says so in errors of its own)."""
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError)
        and any(
            words in str(error)
            for words in ("CUDA out of memory", "CUDA error: out of memory", "STATUS_ALLOC_FAILED")
        )
    )


def work(job: dict[str, Any], tasks: Any, done: Any) -> None:
    """A worker process: tasks from a queue, reports back, until a task is None."""
    torch.set_num_threads(job["threads"])
    os.environ["OMP_NUM_THREADS"] = str(job["threads"])
    # Entered and never left: this process does nothing else.
    with contextlib.ExitStack() as stack:
        from threadpoolctl import threadpool_limits

        stack.enter_context(threadpool_limits(job["threads"]))
        views = {
            name: torch.as_tensor(np.load(job["folder"] / f"{name}.npy"), device=job["device"])
            for name in job["networks"]
        }
        while (task := tasks.get()) is not None:
            done.put(attempt(job, views, task))
            # After the report, when no error holds on to the tensors of its frames.
            gc.collect()
            torch.cuda.empty_cache()


def attempt(job: dict[str, Any], views: dict[str, Any], task: Task) -> Report:
    """One task; an error becomes a report."""
    start = time.perf_counter()
    try:
        part = Digit(task.digit, job["labels"], job["n_train"], job["per_digit"])
        used = {k: v for k, v in views.items() if task.tag == REGIONS or "@" not in k}
        rows, weights = run_scaling(
            part, used, task.scaling, job["device"], job["skip"], task.tag, job["threads"]
        )
        found = [{"target": task.digit, **row} for row in rows]
        return Report(task, found, weights, time.perf_counter() - start, "", no_memory=False)
    except Exception as error:
        seconds, full = time.perf_counter() - start, out_of_memory(error)
        return Report(task, [], {}, seconds, repr(error), no_memory=full)


def reports(
    todo: Sequence[Task], tasks: Any, done: Any, workers: int, limit: float
) -> Iterator[Report]:
    """Reports as they come, then word to the workers to stop; `queue.Empty` after the limit.

    A task that found the GPU's memory full goes back to the end of the queue, once: others may
    have been the ones who filled it.
    """
    for task in todo:
        tasks.put(task)
    left, again = len(todo), set()
    while left:
        report = done.get(timeout=max(limit - (time.perf_counter() - START), 0.1))
        if report.no_memory and report.task not in again:
            again.add(report.task)
            tasks.put(report.task)
            task = report.task
            say(f"digit {task.digit}, {task.scaling}{task.tag}: memory full, once more later")
            continue
        left -= 1
        yield report
    for _ in range(workers):
        tasks.put(None)


def run_crew(
    job: dict[str, Any], todo: Sequence[Task], workers: int, limit: float
) -> Iterator[Report]:
    """Reports of a crew that starts here, and ends with the last one or at the limit."""
    context = torch.multiprocessing.get_context("spawn")
    tasks, done = context.Queue(), context.Queue()
    crew = [context.Process(target=work, args=(job, tasks, done)) for _ in range(workers)]
    for member in crew:
        member.start()
    try:
        yield from reports(todo, tasks, done, workers, limit)
    except queue.Empty:
        say(f"stopped after {limit:g} s; what is finished is written")
        for member in crew:
            member.terminate()
    for member in crew:
        member.join()
