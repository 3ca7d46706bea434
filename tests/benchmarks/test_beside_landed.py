"""Old beside new: means over tasks that both sides finished, bounds, tasks that failed."""

import json

import pytest

from benchmarks import beside_landed


def write(part, side, tasks):
    lines = [json.dumps([task, found]) for task, found in tasks.items()]
    beside_landed._path(part, side).write_text("\n".join(lines) + "\n")


@pytest.fixture
def measured(tmp_path, monkeypatch):
    monkeypatch.setattr(beside_landed, "CACHE", tmp_path)
    write(
        "arena",
        "old",
        {"a": [["AUC, tables", 80.0]], "b": [["AUC, tables", 90.0]], "c": [["AUC, tables", 0.0]]},
    )
    write(
        "arena",
        "new",
        {
            "a": [["AUC, tables", 79.8]],
            "b": [["AUC, tables", 89.7]],
            "c": [["failed: ValueError: X", 1.0]],
        },
    )


def test_means_are_over_tasks_that_both_sides_finished(measured):
    lines, count = beside_landed.lines_of("arena")
    assert count == 2
    assert lines[0] == ("AUC, tables", 85.0, 84.75, "difference -0.3", True)
    assert lines[1] == ("new failed: ValueError: X", 1.0, 1.0, "0", False)


def test_lines_outside_their_bound_are_bold(measured):
    write("arena", "new", {"a": [["AUC, tables", 79.6]], "b": [["AUC, tables", 89.7]]})
    assert "**AUC, tables** | 85.0 | 84.7 | -0.3 | difference -0.3" in beside_landed.page(["arena"])


@pytest.mark.parametrize("part", ["far", "sensor"])
def test_a_task_gives_shares_in_percent(part):
    tasks, measure = beside_landed.PARTS[part]
    found = dict(measure(tasks()[0])) if part == "far" else dict(measure("gauss 30 0"))
    assert all(0.0 <= value <= 100.0 for value in found.values())
    assert len(found) == (3 if part == "far" else 4)
