"""The release workflow runs what was reviewed: actions by commit, tools by hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="reading the workflow needs PyYAML")

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELEASE = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path):
    used = re.findall(r"uses: *(\S+)(.*)", path.read_text())
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action), action
        assert re.match(r" # v\d+\.\d+\.\d+$", comment), f"{action} does not say its version"


def commands(job: str) -> str:
    return "\n".join(step.get("run", "") for step in RELEASE[job]["steps"])


def test_what_is_published_is_built_apart_from_the_tests():
    assert set(RELEASE["publish"]["needs"]) == {"test", "build"}
    assert "upload-artifact" not in str(RELEASE["test"])
    assert "make" not in commands("build")
    installs = [line for line in commands("build").splitlines() if "install" in line]
    assert len(installs) == 1
    assert "--require-hashes" in installs[0]
    assert "--no-isolation" in commands("build")  # or the newest backend would be fetched


def test_tools_have_a_version_and_a_hash_each():
    lines = (ROOT / ".github/release-requirements.txt").read_text().splitlines()
    tools = [line for line in lines if line and not line.startswith("#")]
    assert {line.partition("==")[0] for line in tools} >= {"build", "hatchling"}
    for line in tools:
        assert re.fullmatch(r"[\w-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line), line


def test_hashes_are_printed_and_compared():
    assert "sha256sum" in commands("build")
    assert "sha256sum --strict --check" in commands("publish")
    assert RELEASE["publish"]["steps"][-1]["with"]["print-hash"] is True


def test_only_the_publisher_may_prove_who_it_is():
    for name, job in RELEASE.items():
        expected = {"id-token": "write"} if name == "publish" else {"contents": "read"}
        assert job["permissions"] == expected


def test_every_dependency_has_a_lower_bound():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    needs = [need for group in groups for need in group if not need.startswith("kernull")]
    assert {"pillow", "onnx", "onnxruntime"} <= {re.match(r"[\w-]+", need)[0] for need in needs}
    for need in needs:
        assert re.match(r"[\w-]+(\[[\w,]+\])?(>=|==)\d", need), need
