"""The benchmark of Calibrated: its page, and a small run."""

from __future__ import annotations

from benchmarks import calibrated


def test_the_page_says_which_lines_missed():
    lines = [
        ["Gaussian, 100 x 10", "IsolationForest", "4.4 ± 0.5", "6.9", "90"],
        ["Gaussian, 1000 x 10", "IsolationForest", "**7.4 ± 0.5**", "", "80"],
        ["counts, 500 x 20", "IsolationForest", "1.0 ± 0.1", "9.9", "70"],
    ]
    text = calibrated.page(lines, 2, 1.0)
    assert "**3 lines, 1 outside (bold).**" in text
    assert "flag 6.9 to 6.9%; calibrated, 4.4 to 7.4% (continuous rows)" in text
    assert "of continuous rows: IsolationForest 5.9%." in text
    assert "| Gaussian, 1000 x 10 | IsolationForest | **7.4 ± 0.5** |  | 80 |" in text


def test_a_small_run(monkeypatch):
    monkeypatch.setattr(calibrated, "NEW", 200)
    found = calibrated.measure(("near copies", calibrated.g.factor, 80, 6, False, 4), 2)
    assert [line[1] for line in found] == list(calibrated.detectors(6))
    assert all(0 <= float(line[4]) <= 100 for line in found)
