"""A Judge on the engines of others: what they give is what it gives by itself."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from kernull import Judge


@pytest.fixture(scope="module")
def judge_and_rows():
    rng = np.random.default_rng(0)
    load = rng.normal(size=200)
    good = pd.DataFrame(
        {
            "part": [f"P{i}" for i in range(200)],
            "force": 100 + 5 * load,
            "power": 40 + load + 0.1 * rng.normal(size=200),
        }
    )
    odd = np.where(np.arange(200) % 20 == 0, 3.0, 0.1 * rng.normal(size=200))
    return Judge(id="part").fit(good), good.assign(power=good["power"] + odd)


def test_partitions_of_dask(judge_and_rows):
    dask = pytest.importorskip("dask.dataframe")
    judge, rows = judge_and_rows
    lazy = dask.from_pandas(rows, npartitions=3)
    out = lazy.map_partitions(judge.judge, meta=judge.judge(rows.iloc[:1]))
    pd.testing.assert_frame_equal(
        out.compute(scheduler="synchronous"), judge.judge(rows), check_dtype=False
    )


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::Warning:pyspark", "ignore:PySpark does not:FutureWarning")
def test_batches_of_spark(judge_and_rows, monkeypatch):
    from pyspark.sql import SparkSession

    judge, rows = judge_and_rows
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    place = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = SparkSession.builder.master("local[1]").config(map=place | quiet).getOrCreate()
    try:
        schema = spark.createDataFrame(judge.judge(rows.iloc[:1])).schema
        frame = spark.createDataFrame(rows)
        out = frame.mapInPandas(lambda tables: map(judge.judge, tables), schema).toPandas()
    finally:
        spark.stop()
    pd.testing.assert_frame_equal(out, judge.judge(rows), check_dtype=False)
