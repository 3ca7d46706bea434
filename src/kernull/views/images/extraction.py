"""Images through a network, batch by batch, with what is in the cache left out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernull._text import first_line
from kernull.views.images.backbones import Backbone
from kernull.views.images.cache import FeatureCache
from kernull.views.images.preprocessing import Box, crop
from kernull.views.images.reading import Image, need_pillow

Features = NDArray[np.float32]
Prepared = tuple[bytes, Features]


def digest_all(images: Sequence[Image], threads: int) -> dict[int, str]:
    """Hash all images; what is wrong with those that cannot be read, by position."""
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(getattr, image, "digest") for image in images]
    errors = {i: future.exception() for i, future in enumerate(futures)}
    return {i: first_line(error) for i, error in errors.items() if error is not None}


def extract(
    images: Sequence[Image],
    backbone: Backbone,
    box: Box,
    batch_size: int,
    cache: Any,
    threads: int,
    bad: dict[int, str],
    progress: Callable[[int], None],
) -> Features:
    """Features (n, d) of images that are hashed already; rows of bad images are NaN.

    ``bad`` has the images that cannot be read, by position, and why: those found out here are
    added. ``progress`` is called with the number of images that are done, again and again.
    """
    need_pillow()  # one clear error, rather than one for each image
    out = np.full((len(images), backbone.n_features), np.nan, dtype=np.float32)
    # Everything that features depend on, but for the image.
    preprocessing = backbone.preprocessing.fingerprint()
    space = f"weights {backbone.fingerprint} preprocessing {preprocessing} region {box}"
    store = None if cache is None else FeatureCache(cache, space)
    rows: dict[bytes, list[int]] = {}  # equal images are computed once
    for i, image in enumerate(images):
        if i not in bad:
            rows.setdefault(image.digest, []).append(i)
    progress(len(bad))
    for digest, values in (store.get(rows, backbone.n_features) if store else {}).items():
        found = rows.pop(digest)
        out[found] = values
        progress(len(found))

    def prepare(i: int) -> Prepared:
        digest, pixels = images[i].load()
        return digest, backbone.preprocessing(crop(pixels, box))

    waiting = list(rows.values())
    batches = [waiting[k : k + batch_size] for k in range(0, len(waiting), batch_size)]
    with ThreadPoolExecutor(threads) as pool:
        for batch, futures in _ahead(pool, prepare, batches):
            ready: list[tuple[list[int], Prepared]] = []
            for positions, future in zip(batch, futures, strict=True):
                try:
                    ready.append((positions, future.result()))
                except Exception as error:
                    bad.update(dict.fromkeys(positions, first_line(error)))
            if ready:
                features = backbone.run(np.stack([values for _, (_, values) in ready]))
                if store is not None:
                    store.put([digest for _, (digest, _) in ready], features)
                for (positions, _), values in zip(ready, features, strict=True):
                    out[positions] = values
            progress(sum(len(positions) for positions in batch))
    return out


def _ahead(
    pool: ThreadPoolExecutor, prepare: Any, batches: Sequence[list[list[int]]]
) -> Iterator[tuple[list[list[int]], list[Future[Prepared]]]]:
    """Batches, while the next one is being prepared."""
    queue: deque[tuple[list[list[int]], list[Future[Prepared]]]] = deque()
    for batch in batches:
        queue.append((batch, [pool.submit(prepare, positions[0]) for positions in batch]))
        if len(queue) == 2:
            yield queue.popleft()
    yield from queue


@contextmanager
def progress_bar(verbose: int, title: str, total: int) -> Iterator[Callable[[int], None]]:
    """What moves a bar on stderr forward by so many; without a bar where nobody asked for it."""
    if not verbose:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)
