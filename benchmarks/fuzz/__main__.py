"""Run all targets side by side in time, each in a process of its own, and print what came of it."""

from __future__ import annotations

import argparse
import collections
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.fuzz.cases import MAX_MEGABYTES, MAX_SECONDS, run_cases

#: Findings of a target that are printed.
SHOWN = 25
#: Shares of the time.
TARGETS = {"models": 0.4, "tables": 0.2, "files": 0.3, "pages": 0.1}


def make(name: str) -> Any:
    """A target by its name."""
    from importlib import import_module

    module = import_module(f"benchmarks.fuzz.{name}")
    return getattr(module, name.capitalize())()


def missing(name: str) -> str | None:
    """What a target needs and is not there."""
    from importlib.util import find_spec

    needs = {"files": ["openpyxl", "pyarrow", "python_calamine"], "pages": ["playwright"]}
    absent = [need for need in needs.get(name, []) if find_spec(need) is None]
    if absent or name != "pages":
        return ", ".join(absent) or None
    from benchmarks.fuzz.pages import chromium

    return None if chromium() else "chromium"


def child(options: argparse.Namespace) -> int:
    """Run one target here and write its report."""
    if options.target != "pages":  # a browser reserves more than that
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit = used + 8 * 2**30
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    target = make(options.target)
    most = 10**9 if options.case is None else 1
    report = run_cases(
        options.target,
        target,
        options.seed,
        options.seconds,
        first=options.first if options.case is None else options.case,
        most=most,
        path=Path(options.out) if options.out else None,
    )
    getattr(target, "close", lambda: None)()
    if not options.out:
        show(report.as_dict())
    return 0


def run_target(name: str, options: argparse.Namespace, seconds: float, out: Path) -> dict[str, Any]:
    """Run a target in a process of its own; where a case ends it, go on behind that case."""
    end, first = time.perf_counter() + seconds, -1
    total: dict[str, Any] = {"target": name, "cases": 0, "outcomes": collections.Counter(),
                             "findings": [], "slowest": [0.0, ""], "megabytes": 0.0}  # fmt: skip
    while first < 0 or time.perf_counter() < end:
        left = max(1.0, end - time.perf_counter())
        command = [sys.executable, "-m", "benchmarks.fuzz", "--target", name, "--seed",
                   str(options.seed), "--seconds", str(left), "--first", str(first), "--out",
                   str(out)]  # fmt: skip
        out.unlink(missing_ok=True)
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        part = json.loads(out.read_text()) if out.exists() else {}
        add(total, part)
        if done.returncode == 0:
            break
        label = part.get("now", "the start")
        said = done.stderr.strip().splitlines() or [""]
        total["findings"].append(f"{label}: the process ended with {done.returncode}: {said[-1]}")
        number = label.rpartition("--case ")[2].rstrip(")")
        if not number.isdigit():
            break  # in the corpus, or before it
        first = int(number) + 1
    return total


def add(total: dict[str, Any], part: dict[str, Any]) -> None:
    """Add the report of a process to that of its target."""
    if part:
        total["cases"] += part["cases"]
        total["outcomes"].update(part["outcomes"])
        total["findings"] += part["findings"]
        total["slowest"] = max(total["slowest"], part["slowest"])
        total["megabytes"] = max(total["megabytes"], part["megabytes"])


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Feed hostile files to everything that reads files."
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="printed; by default the time"
    )
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--case", type=int, help="run this one case of --target")
    parser.add_argument("--require", default="", help="targets that may not be skipped, or all")
    parser.add_argument("--seconds", type=float, default=60.0, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.target:
        return child(options)
    print(f"seed {options.seed}, {options.minutes:g} minutes", flush=True)
    reports, required = [], options.require.split(",")
    with tempfile.TemporaryDirectory() as folder:
        for name, share in TARGETS.items():
            absent = missing(name)
            if absent:
                bad = name in required or "all" in required
                print(f"{name}: {'FINDING' if bad else 'skipped'}, needs {absent}", flush=True)
                reports += [{"findings": [absent], "slowest": [0.0, ""], "megabytes": 0.0}] * bad
                continue
            seconds = 60 * options.minutes * share
            reports.append(run_target(name, options, seconds, Path(folder) / name))
            show(reports[-1])
    return verdict(reports)


def show(report: dict[str, Any]) -> None:
    print(f"{report['target']}: {report['cases']:,} cases, {len(report['findings'])} findings, "
          f"slowest {report['slowest'][0]:.2f} s ({report['slowest'][1]}), "
          f"largest memory {report['megabytes']:.0f} MB")  # fmt: skip
    for line, count in sorted(report["outcomes"].items()):
        print(f"  {count:7,}  {line}")
    for line in report["findings"][:SHOWN]:
        print(f"  FINDING {' '.join(line.split())[:400]}")
    if len(report["findings"]) > SHOWN:
        print(f"  and {len(report['findings']) - SHOWN} more")
    sys.stdout.flush()


def verdict(reports: list[dict[str, Any]]) -> int:
    findings = sum(len(report["findings"]) for report in reports)
    memory = max(report["megabytes"] for report in reports)
    slowest = max(tuple(report["slowest"]) for report in reports)
    print(f"== {findings} findings; largest memory {memory:.0f} MB (limit {MAX_MEGABYTES:.0f}); "
          f"slowest case {slowest[0]:.2f} s (limit {MAX_SECONDS:g})")  # fmt: skip
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
