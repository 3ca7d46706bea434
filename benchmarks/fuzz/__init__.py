"""Feed hostile files to everything that reads files.

    python -m benchmarks.fuzz                         # ten minutes over all targets
    python -m benchmarks.fuzz --minutes 2 --seed 7
    python -m benchmarks.fuzz --target models --seed 7 --case 1234   # one case again
    python -m benchmarks.fuzz.sweep   # every single change of every field of a model file: hours

A target makes cases from a seed: what cannot be used must be refused in plain words; what is taken
must hold together. Anything else is a finding: another exception, a warning, a program started or
an address asked while a file is read, more than 2 s, more than 1 GB, the end of the process.
Every target runs in a process of its own, after the corpus of past failures.
"""
