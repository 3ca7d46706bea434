"""What version 0.3 removed is named nowhere but where one reads what to use instead."""

from __future__ import annotations

import re

import pytest

import kernull
from kernull._removed import COMMANDS, GONE_PARAMETERS, OPTIONS
from kernull._removed import NAMES as GONE
from tests.cli.conftest import kernull as run
from tests.docs.pages import ROOT

#: Names in Python, by word.
WORDS = """
learning_method with_shared typical_contributions_ calibration_contributions_
to_onnx BackboneFeatures ImageViews load_embeddings EmbeddingViews image_paths FeatureCache
OnnxBackbone torch_backbones BadImageError BadImageWarning MissingWeightsError check_npz
check_graph check_pixels limit_memory run_limited open_picture read_picture MAX_UNPACKED
FACE_REGIONS PAPER_NETWORKS phone_picture plot_09_images binary_files open_arrow open_npz MAX_NPZ
MAX_NPZ_RATIO write_feather DriftTest WatchState label_optional partial_fit max_samples
sample_indices_ n_samples_seen_ relearn fit_stream check_stream_memory FeatureGram ArraySource
ParquetSource open_source read_format_1 left_out_copies copy_shares warn_of_near_copies
BatchedJointFisherProblem torch_joint n_reference _reference_rows REFERENCE_ROWS pooled_kernels
plot_03_joint_tasks MultiKernelFisherNullCV SelectionDisplay BoundaryDisplay ContributionsDisplay
to_monitor to_nonconform EdgeOfGridWarning make_pseudo_scorer draw_pseudo shared_path PAPER_GRID
TARGETS_ONLY plot_06_explanations plot_07_displays plot_08_widths_and_weights
explain_columns table_reasons TableReason LostViewsWarning Judgement
"""
NAMES = WORDS.split()
#: Modules, extras, commands, options and files, as regular expressions.
OTHERS = (
    r"kernull\.io\.onnx", r"kernull\.safety", r"views\.images",
    r"kernull\[(vision|onnx|pyod|nonconform)\]",
    r"benchmarks\.images", r"bench-images", r"guide/images\.md", r"fuzz\.(graphs|pictures)",
    r"kernull\.methods", r"kernull\.demo\b", r"kernull (compare|watch|reproduce)\b",
    r"kernull demo(?!/)\b", r"--until-end", r"--alarm-every", r"--every-row",
    r"fit [^`\n]*--select", r"reference=.permuted", r"pooled=", r"format1",
    r"(models|estimators)\.streaming", r"models\.growing", r"kernull\.selection",
    r"kernull\.paths", r"kernull\.metrics", r"problems\.incremental", r"calibration\.adapters",
    r"bench-selection", r"make choosing", r"benchmarks\.(selection|choosing)",
    r"results/(choosing|selection)\b",
)  # fmt: skip
PLACES = ("src", "docs", "examples", "benchmarks", "README.md", "Makefile", "pyproject.toml", ".ci")
#: They tell what is gone.
KEPT = {"docs/start/moving.md", "src/kernull/_removed.py"}
TEXT = {".py", ".md", ".toml", ".rst", ".txt", ".yml", ".html", ""}


def texts() -> dict[str, str]:
    found = {}
    for place in PLACES:
        start = ROOT / place
        for path in [start] if start.is_file() else sorted(start.rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            built = "_build" in name or "/generated/" in name or "auto_examples" in name
            if path.is_file() and path.suffix in TEXT and not built and name not in KEPT:
                found[name] = path.read_text(encoding="utf-8")
    return found


TEXTS = texts()


@pytest.mark.parametrize("pattern", [*(rf"\b{name}\b" for name in NAMES), *OTHERS])
def test_what_was_removed_is_not_named(pattern):
    sought = re.compile(pattern)
    assert [name for name, text in TEXTS.items() if sought.search(text)] == []


def test_the_page_on_moving_says_where_things_went():
    page = (ROOT / "docs/start/moving.md").read_text(encoding="utf-8")
    for name in ("to_onnx", "ImageViews", "load_embeddings", "kernull compare", "kernull watch",
                 "kernull demo", "kernull reproduce", "partial_fit", "fit_stream", "reference",
                 "pooled", "MultiKernelFisherNullCV", "kernull.selection", "kernull.metrics",
                 "to_nonconform", "to_monitor", "BoundaryDisplay", "ContributionsDisplay",
                 "SelectionDisplay", "RidgeInverse", "--select", "max_samples"):  # fmt: skip
        assert name in page, name


@pytest.mark.parametrize("name", GONE)
def test_an_error_says_where_to_read_on(name):
    with pytest.raises(AttributeError, match=r"removed in version 0\.3; docs/start/moving\.md"):
        getattr(kernull, name)
    assert not hasattr(kernull, name)
    assert name in (ROOT / "docs/start/moving.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_where_to_read_on(name, tmp_path):
    done = run(name, "model.kernull", "--option", cwd=tmp_path)
    assert done.returncode == 2
    said = " ".join(done.stderr.replace("│", " ").split())
    assert f"kernull {name} was removed in version 0.3; docs/start/moving.md" in said
    assert name not in run("--help", cwd=tmp_path).stdout.split()


@pytest.mark.parametrize("name", GONE_PARAMETERS)
def test_a_parameter_says_what_to_write(name):
    message = f"{name} was removed in version 0.3: "
    with pytest.raises(TypeError, match=message):
        kernull.MultiKernelFisherNull(**{name: 1})
    with pytest.raises(ValueError, match=message):
        kernull.JointMultiKernelFisherNull().set_params(**{name: 1})
    assert name in (ROOT / "docs/start/moving.md").read_text(encoding="utf-8")


def test_parameters_of_others_stay():
    """What is a parameter of one estimator still is."""
    model = kernull.paper.FisherNull(score_type="distance")
    assert model.set_params(score_type="projection").score_type == "projection"
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        kernull.MultiKernelFisherNull(colour=1)


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_says_what_to_write(name, tmp_path):
    done = run("fit", "train.csv", name, "1", cwd=tmp_path)
    assert done.returncode == 2
    assert f"{name} was removed in version 0.3" in done.stderr
    assert f"{name} " in (ROOT / "docs/start/moving.md").read_text(encoding="utf-8").replace(
        "`", " "
    )
