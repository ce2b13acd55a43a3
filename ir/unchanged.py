"""Whether a model still says what its document says, found without a copy of the tree."""

from __future__ import annotations

from lxml import etree

from .elements import read_back_edges, read_info, read_port_map, read_ports
from .graph import Graph, Model
from .layer import BODIES, Layer


def is_unchanged(model: Model) -> bool:
    """Whether nothing was changed; False also where an edge or layer was changed back."""
    root = model.element
    if root is None or model.text is None:
        return False
    if (model.name, str(model.version)) != (root.get("name", ""), root.get("version")):
        return False
    trees = (
        ("meta_data", model.meta_data),
        ("quantization_parameters", model.quantization_parameters),
        ("pre-process", model.pre_process),
    )
    if any(_read_tree(root, tag) != info for tag, info in trees):
        return False
    graphs: list[Graph] = [model]
    while graphs:
        graph = graphs.pop()
        if not _is_graph_unchanged(graph):
            return False
        for layer in graph.layers:
            if layer._opened:
                if not _is_layer_unchanged(layer):
                    return False
                graphs.extend((layer._bodies or {}).values())
    return True


def _is_graph_unchanged(graph: Graph) -> bool:
    """Whether layers, edges and rt_info are those of the element; not what is in the layers."""
    element = graph.element
    if element is None or graph._rewired or _read_tree(element, "rt_info") != graph.rt_info:
        return False
    return graph._read_labels == graph._labels()


def _is_layer_unchanged(layer: Layer) -> bool:
    """Whether what was read of a layer is what its element says."""
    element = layer.element
    if element is None or layer._value is not None:
        return False
    if layer.output_names != element.get("output_names") and layer.type == "Result":
        return False
    if layer._data is not None:
        found = element.find("data")
        said = [] if found is None else found.items()
        if list(layer._data.items()) != said:
            return False
    for ports, tag in ((layer._inputs, "input"), (layer._outputs, "output")):
        if ports is not None and read_ports(element.find(tag), outputs=tag == "output") != ports:
            return False
    if not isinstance(layer._rt_info, bool) and _read_tree(element, "rt_info") != layer._rt_info:
        return False
    if layer._back_edges is not None and (
        read_back_edges(element.find("back_edges")) != layer._back_edges
    ):
        return False
    for body, tag in BODIES.items():
        if layer._port_maps is not None:
            found = element.find(tag)
            held = layer._port_maps.get(body)
            if (None if found is None else read_port_map(found)) != held:
                return False
        if layer._bodies is not None:
            inner = layer._bodies.get(body)
            if (None if inner is None else inner.element) is not element.find(body):
                return False
    return True


def _read_tree(parent: etree._Element, tag: str) -> object:
    found = parent.find(tag)
    return None if found is None else read_info(found)
