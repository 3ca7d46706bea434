"""What a default decision is worth: noise views, broken views, far rows, units, unclean rows.

    python -m benchmarks.decisions                # everything, under eight minutes on two cores
    python -m benchmarks.decisions --seeds 2 --only wine

It judges what a plain ``MultiKernelFisherNull(views=...)`` makes. The protocol stands in
`benchmarks.decisions.protocol` and was committed before the final run.
"""
