"""Whether a model still says what its document says, found without a copy of the tree."""

from __future__ import annotations

from lxml import etree

from ..document import PARTS, Graph, Layer, Model, read_info


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
            if layer.parts_read or layer.has_new_value:
                if not _is_layer_unchanged(layer):
                    return False
                graphs.extend(layer.parts_read.get("bodies", {}).values())
    return True


def _is_graph_unchanged(graph: Graph) -> bool:
    """Whether layers, edges and rt_info are those of the element; not what is in the layers."""
    element = graph.element
    if element is None or graph.is_rewired or graph.is_relabelled:
        return False
    return _read_tree(element, "rt_info") == graph.rt_info


def _is_layer_unchanged(layer: Layer) -> bool:
    """Whether what was read of a layer is what its element says."""
    return not layer.has_new_value and all(
        PARTS[name].is_said(layer, held) for name, held in layer.parts_read.items()
    )


def _read_tree(parent: etree._Element, tag: str) -> object:
    found = parent.find(tag)
    return None if found is None else read_info(found)
