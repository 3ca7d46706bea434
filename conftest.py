"""Doctests of src and experiments are collected; those of a missing extra are left out."""

from importlib.util import find_spec

#: Modules that import an extra at their top or in their examples, and which.
NEEDS = {
    "src/kernull/problems/torch_joint.py": "torch",
    "src/kernull/stacks/torch_kernel_set.py": "torch",
    "src/kernull/stacks/torch_tiled.py": "torch",
    "src/kernull/stacks/triton_rbf.py": "triton",
    "src/kernull/views/images/preprocessing.py": "PIL",
}

collect_ignore = [path for path, extra in NEEDS.items() if find_spec(extra) is None]
