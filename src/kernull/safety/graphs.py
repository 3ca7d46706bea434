"""ONNX files: one file, no cycles, loops with a bound, and limits on memory and time.

A graph is a program. These checks bound what it costs; that it computes what its name says, no
check can tell.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from kernull.errors import need

#: Bytes of an ONNX file.
MAX_FILE_BYTES = 2**31
#: Nodes of a graph, those of its subgraphs and functions included.
MAX_NODES = 100_000
#: Graphs may be nested this deep (in branches, loops and functions).
MAX_DEPTH = 8
#: Turns of a loop; a loop must say how many it takes at most, in the file itself.
MAX_TURNS = 10_000
#: Bytes of any one array of a network while it looks at one image, as far as they can be foretold.
MAX_ARRAY_BYTES = 2**29
#: Bytes that all networks of a process may take on the CPU.
MAX_MEMORY = 4 * 2**30
#: Seconds that a network may take for each image of a batch.
MAX_SECONDS = 30.0


def check_graph(content: bytes, image: tuple[int, int] | None = None) -> None:
    """Refuse an ONNX file that is none, reads other files, or may not end.

    With ``image`` (height, width), the sizes of all arrays are foretold for one and limited. The
    ValueError says what is wrong, to be put behind the name of the file.
    """
    wanted = "ONNX networks are checked by onnx; install it with `pip install kernull[vision]`."
    onnx = need("onnx", wanted)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception as error:  # protobuf's own, of whichever of its implementations
        raise ValueError("is no ONNX file, or is cut short") from error
    if not model.graph.input or not model.graph.output:
        raise ValueError("has no input or no output")
    _check_names(model)
    nodes = 0
    for graph, depth in _graphs(model):
        nodes += len(graph.node)
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise ValueError(f"has more than {MAX_NODES:,} nodes, or graphs nested too deep")
        _check_order(graph)
        _check_loops(onnx, graph, depth)
        _check_resizes(graph)
    _check_calls(model)
    _check_data(onnx, model)
    _check_form(onnx, model)
    if image is not None:
        _check_sizes(onnx, model, image)


def _check_names(model: Any) -> None:
    """Refuse inputs and outputs whose names, or those of their sizes, are no text: UTF-8."""
    values = (*model.graph.input, *model.graph.output)
    sizes = (size for value in values for size in value.type.tensor_type.shape.dim)
    names = (*(value.name for value in values), *(size.dim_param for size in sizes))
    if not all(isinstance(name, str) for name in names):  # protobuf gives bytes
        raise ValueError("has an input or an output with a name that is no text")


def _graphs(model: Any) -> Iterator[tuple[Any, int]]:
    """The graph, its functions, and the graphs in their nodes; with their depths."""
    waiting: list[tuple[Any, int]] = [(model.graph, 0), *((f, 1) for f in model.functions)]
    while waiting:
        graph, depth = waiting.pop()
        yield graph, depth
        for node in graph.node:
            for attribute in node.attribute:
                inner = [attribute.g] if attribute.HasField("g") else []
                waiting += [(each, depth + 1) for each in (*inner, *attribute.graphs)]


def _check_order(graph: Any) -> None:
    """Refuse a graph in which a node waits for what follows from it."""
    made_by = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    needs = {
        i: {made_by[name] for name in node.input if name in made_by}
        for i, node in enumerate(graph.node)
    }
    try:
        TopologicalSorter(needs).prepare()
    except CycleError:
        raise ValueError("has a cycle: a node waits for what follows from it") from None


def _check_loops(onnx: Any, graph: Any, depth: int) -> None:
    constants = {t.name: t for t in getattr(graph, "initializer", ())}
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            constants.update((node.output[0], a.t) for a in node.attribute if a.name == "value")
    for node in graph.node:
        if node.op_type != "Loop":
            continue
        turns = constants.get(node.input[0]) if node.input else None
        count = math.inf
        if turns is not None and not _is_external(onnx, turns) and not _elements(turns) > 1:
            # Kinds of data that there are not, and sizes that do not fit, cannot be read.
            with contextlib.suppress(Exception):
                count = int(np.max(onnx.numpy_helper.to_array(turns), initial=0))
        if count > MAX_TURNS or depth > 0:
            raise ValueError(
                f"has a loop that may not end soon; expected at most {MAX_TURNS:,} turns, given "
                "as a constant, and no loop in another graph"
            )


def _check_resizes(graph: Any) -> None:
    """Refuse a Resize that does not say to which size: it ends the process in onnxruntime."""
    for node in graph.node:
        sizes = node.input[1:] if len(node.input) == 2 else node.input[2:]  # two before opset 11
        if node.op_type == "Resize" and not any(sizes):
            raise ValueError("has a Resize without sizes or scales")


def _check_calls(model: Any) -> None:
    """Refuse functions that call each other in a circle, or more often than nodes may be."""
    functions = {(f.domain, f.name): f for f in model.functions}
    sizes: dict[tuple[str, str], int] = {}

    def size(key: tuple[str, str], above: tuple[tuple[str, str], ...]) -> int:
        if key in above or len(above) > MAX_DEPTH:
            raise ValueError("has functions that call each other in a circle, or too deep")
        if key not in sizes:
            sizes[key] = size_of_all(functions[key].node, (*above, key))
        return sizes[key]

    def size_of_all(nodes: Any, above: tuple[tuple[str, str], ...]) -> int:
        calls = [(node.domain, node.op_type) for node in nodes]
        return sum(size(call, above) if call in functions else 1 for call in calls)

    if size_of_all(model.graph.node, ()) > MAX_NODES:
        raise ValueError(f"has more than {MAX_NODES:,} nodes once its functions are written out")


def _tensors(model: Any) -> Iterator[Any]:
    for graph, _ in _graphs(model):
        yield from getattr(graph, "initializer", ())
        for sparse in getattr(graph, "sparse_initializer", ()):
            yield from (sparse.values, sparse.indices)
        for node in graph.node:
            for attribute in node.attribute:
                yield from (attribute.t, *attribute.tensors)
                for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                    yield from (sparse.values, sparse.indices)


def _is_external(onnx: Any, tensor: Any) -> bool:
    external = onnx.TensorProto.DataLocation.Value("EXTERNAL")
    return bool(tensor.data_location == external or tensor.external_data)


def _check_data(onnx: Any, model: Any) -> None:
    """Refuse weights in other files: which ones are read would depend on the current folder."""
    for tensor in _tensors(model):
        if _is_external(onnx, tensor):
            raise ValueError(
                "keeps weights in another file (external data). Write it as one file with "
                "onnx.save(onnx.load(path), path) if you trust it"
            )


def _check_form(onnx: Any, model: Any) -> None:
    """Refuse nodes with other inputs and attributes than they have: onnxruntime may crash."""
    kinds = [v.type.tensor_type for v in (*model.graph.input, *model.graph.output)]
    unknown = [kind for kind in kinds if not kind.HasField("shape")]  # as onnxruntime allows
    for kind in unknown:
        kind.shape.SetInParent()
    try:
        onnx.checker.check_model(model)
    except Exception as error:  # its own, and those of what it is written in
        said = " ".join(str(error).split())
        raise ValueError(f"is no valid ONNX graph: {said[:200]}") from error
    for kind in unknown:
        kind.ClearField("shape")


def _elements(tensor: Any) -> int:
    return math.prod(int(d) for d in tensor.dims)


def _check_sizes(onnx: Any, model: Any, image: tuple[int, int]) -> None:
    """Foretell the sizes of arrays for one image; those that follow from data stay unknown."""
    for tensor in _tensors(model):
        if _elements(tensor) > 1000:  # weights: their values say nothing about sizes
            for name in ("raw_data", "float_data", "double_data", "int32_data", "int64_data"):
                tensor.ClearField(name)
    shape = model.graph.input[0].type.tensor_type.shape
    for dimension, size in zip(shape.dim, (1, 3, *image), strict=False):
        dimension.dim_value = size
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # what it cannot foretell is limited while it runs
        return
    for graph, _ in _graphs(inferred):
        weights = {tensor.name for tensor in getattr(graph, "initializer", ())}
        for value in (*graph.value_info, *getattr(graph, "output", ())):
            kind = value.type.tensor_type
            sizes = [d.dim_value for d in kind.shape.dim]
            # Sizes that are unknown are 0 here, and so is what they are multiplied with.
            if 8 * math.prod(sizes) > MAX_ARRAY_BYTES and value.name not in weights:
                raise ValueError(
                    f"makes an array of shape {sizes} from one image, above {MAX_ARRAY_BYTES:,} "
                    "bytes"
                )


# -- while it runs ---------------------------------------------------------------------------


@cache
def limit_memory(ort: Any) -> None:
    """Let all sessions that ask for it share memory of `MAX_MEMORY` bytes; once in a process."""
    kind = ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR
    info = ort.OrtMemoryInfo("Cpu", kind, 0, ort.OrtMemType.DEFAULT)
    settings = {
        "max_mem": MAX_MEMORY,
        "arena_extend_strategy": -1,
        "initial_chunk_size_bytes": -1,
        "max_dead_bytes_per_chunk": -1,
    }
    ort.create_and_register_allocator(info, ort.OrtArenaCfg(settings))


def run_limited(ort: Any, session: Any, output: str, inputs: Mapping[str, Any], images: int) -> Any:
    """The output of a session; a ValueError where it takes too long, or too much memory."""
    options = ort.RunOptions()
    options.log_severity_level = 4  # errors come as exceptions
    late = threading.Event()

    def stop() -> None:
        late.set()
        options.terminate = True

    seconds = MAX_SECONDS * max(1, images)
    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        return session.run([output], dict(inputs), options)[0]
    except Exception as error:  # onnxruntime's own classes
        if late.is_set():
            raise ValueError(f"took more than {seconds:g} s for {images} image(s)") from error
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"cannot be run: {said[:300]}") from error
    finally:
        timer.cancel()
