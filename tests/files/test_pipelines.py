"""Files of TableViews and an estimator together."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.fuzz.models import pack, unpack
from kernull import MultiKernelFisherNull, TableViews, load, load_views, save
from kernull.errors import ModelFileError
from kernull.paper import MultiKernelSVDD


def parts(n=60, seed=0):
    rng = np.random.default_rng(seed)
    names = {"machine": rng.choice(["A", "B", "C"], n).tolist(), "force": rng.normal(size=n)}
    return {**names, "heat": rng.normal(size=n), "state": rng.choice(["0", "1"], n).tolist()}


@pytest.mark.filterwarnings("ignore:X. empty. no cell is 'off'")
@pytest.mark.parametrize("estimator", [MultiKernelFisherNull(), MultiKernelSVDD()])
def test_a_pipeline_comes_back(tmp_path, estimator):
    views = TableViews(kinds={"state": "category"}, missing="impute", empty=["off"])
    model = Pipeline([("read", views), ("judge", estimator)]).fit(parts())
    save(model, tmp_path / "m.kernull")
    again = load(tmp_path / "m.kernull")
    new = parts(seed=1)
    np.testing.assert_array_equal(again.score_samples(new), model.score_samples(new))
    assert list(again.named_steps) == ["read", "judge"]
    assert again["read"].get_params() == {**views.get_params(), "empty": ["off"]}
    refit = clone(again).fit(parts())
    np.testing.assert_array_equal(refit.score_samples(new), model.score_samples(new))


@pytest.mark.filterwarnings("error")
def test_steps_that_pass_frames_come_back(tmp_path):
    pytest.importorskip("pandas")
    model = make_pipeline(TableViews(), MultiKernelFisherNull()).set_output(transform="pandas")
    model.fit(parts())
    save(model, tmp_path / "m.kernull")
    new = parts(seed=1)
    again = load(tmp_path / "m.kernull")
    np.testing.assert_array_equal(again.score_samples(new), model.score_samples(new))


def test_the_command_line_reads_it(tmp_path):
    from tests.cli.conftest import kernull

    model = make_pipeline(TableViews(), MultiKernelFisherNull()).fit(parts())
    save(model, tmp_path / "m.kernull")
    new = parts(seed=1)
    rows = zip(*new.values(), strict=True)
    text = "\n".join([",".join(new), *(",".join(map(str, row)) for row in rows)])
    (tmp_path / "new.csv").write_text(text)
    done = kernull("score", "m.kernull", "new.csv", "--json", cwd=tmp_path)
    scores = [json.loads(line)["score"] for line in done.stdout.splitlines()]
    np.testing.assert_allclose(scores, model.score_samples(new), rtol=1e-12)


def test_other_pipelines_are_refused_and_nothing_is_written(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = make_pipeline(StandardScaler(), MultiKernelFisherNull()).fit(X)
    with pytest.raises(TypeError, match="pipeline of StandardScaler, MultiKernelFisherNull"):
        save(model, tmp_path / "m.kernull")
    with pytest.raises(Exception, match="not fitted"):
        save(make_pipeline(TableViews(), MultiKernelFisherNull()), tmp_path / "m.kernull")
    assert not list(tmp_path.iterdir())


def test_steps_that_make_no_sense_are_refused(tmp_path):
    path = tmp_path / "m.kernull"
    save(make_pipeline(TableViews(), MultiKernelFisherNull()).fit(parts()), path)
    _, tree, tensors = unpack(path.read_bytes())
    for steps in (["a"], ["a", "a"], ["a__b", "c"], {"a": 1}, "nothing", [1, 2]):
        path.write_bytes(pack(json.dumps({**tree, "steps": steps}), tensors))
        with pytest.raises(ModelFileError):
            load(path)
        assert load_views(path) is not None
