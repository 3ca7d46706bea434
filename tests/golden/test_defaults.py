"""The default decision scores as recorded."""

from __future__ import annotations

import numpy as np
import pytest

from tests.golden import defaults

RECORD = np.load(defaults.RECORD)
NAMES = [
    pytest.param(name, marks=pytest.mark.torch) if name == "torch" else name
    for name in defaults.CASES
]
#: Relative to the largest value of an array.
TOLERANCE = 1e-10


@pytest.mark.parametrize("name", NAMES)
def test_default_models_score_as_recorded(name):
    measured = defaults.measured(name)
    assert {f"{name}/{key}" for key in measured} == {
        key for key in RECORD.files if key.startswith(f"{name}/")
    }
    for key, values in measured.items():
        recorded = RECORD[f"{name}/{key}"]
        scale = np.abs(recorded[np.isfinite(recorded)]).max(initial=1e-300)
        np.testing.assert_allclose(values, recorded, rtol=0, atol=TOLERANCE * scale, err_msg=key)
