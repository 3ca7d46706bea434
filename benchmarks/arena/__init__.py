"""The arena: every method of ours and every peer a user would pick, on every problem at hand.

    python -m benchmarks.arena                      # run what is missing, then write the report
    python -m benchmarks.arena --families tables --entrants "5 nearest*" --jobs 2
    python -m benchmarks.arena report               # tables and figures of the finished cells
    python -m benchmarks.arena rules                # candidate defaults, left-out families
    python -m benchmarks.arena problems             # what is there, and what is missing and why

Finished cells are stored at once; after Ctrl-C or a kill the same command resumes. The protocol
stands in `benchmarks.arena.protocol` and was committed before the final run.
"""
