"""The model in memory: layers and their parts, the graph, names, named sizes, the builder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .attributes import unknown_attribute as unknown_attribute
    from .attributes import write_attributes as write_attributes
    from .builder import Builder as Builder
    from .builder import Output as Output
    from .constant_data import bin_hint as bin_hint
    from .constant_data import check_constant as check_constant
    from .constant_data import no_bin as no_bin
    from .edges import read_edges as read_edges
    from .editing import Editor as Editor
    from .ends import End as End
    from .ends import Ends as Ends
    from .ends import output_type as output_type
    from .execution_graph import EXECUTION_GRAPH as EXECUTION_GRAPH
    from .execution_graph import EXECUTION_HINT as EXECUTION_HINT
    from .execution_graph import is_execution_graph as is_execution_graph
    from .execution_graph import is_primitive as is_primitive
    from .execution_graph import refuse_execution_graph as refuse_execution_graph
    from .graph import DEEPEST as DEEPEST
    from .graph import SINKS as SINKS
    from .graph import Graph as Graph
    from .graph import LookUps as LookUps
    from .graph import with_bodies as with_bodies
    from .joined import joined_numbers as joined_numbers
    from .layer import Layer as Layer
    from .layer_parts import BODIES as BODIES
    from .layer_parts import BODIES_OF as BODIES_OF
    from .layer_parts import LAYER_ORDER as LAYER_ORDER
    from .layer_parts import NET_ORDER as NET_ORDER
    from .layer_parts import PARTS as PARTS
    from .layouts import axis_names as axis_names
    from .layouts import layout_spelling as layout_spelling
    from .layouts import layout_text as layout_text
    from .literals import Value as Value
    from .literals import array_of as array_of
    from .model import Model as Model
    from .names import FreeNames as FreeNames
    from .names import body_path as body_path
    from .names import by_input as by_input
    from .names import listed as listed
    from .names import named_inputs as named_inputs
    from .names import named_output as named_output
    from .names import output_keys as output_keys
    from .names import output_names as output_names
    from .names import paired_by_name as paired_by_name
    from .names import path_of as path_of
    from .names import tensor_keys as tensor_keys
    from .origin import Kind as Kind
    from .origin import Origin as Origin
    from .origin import Remark as Remark
    from .parts import LARGEST_ID as LARGEST_ID
    from .parts import BackEdge as BackEdge
    from .parts import Edge as Edge
    from .parts import Info as Info
    from .parts import MapEntry as MapEntry
    from .parts import Port as Port
    from .parts import PortMap as PortMap
    from .parts import dims_of as dims_of
    from .parts import join_names as join_names
    from .parts import read_back_edges as read_back_edges
    from .parts import read_dim as read_dim
    from .parts import read_info as read_info
    from .parts import read_port_map as read_port_map
    from .parts import read_ports as read_ports
    from .parts import split_names as split_names
    from .parts import whole as whole
    from .stamp import stamp_of as stamp_of
    from .symbols import keep_symbols as keep_symbols
    from .symbols import own_names as own_names
    from .symbols import with_symbols as with_symbols
    from .turning import Readings as Readings
    from .turning import Ways as Ways
    from .turning import is_on as is_on
    from .turning import swaps_last as swaps_last
    from .turning import ways_of as ways_of

face(
    __name__,
    {
        "attributes": "unknown_attribute write_attributes",
        "builder": "Builder Output",
        "constant_data": "bin_hint check_constant no_bin",
        "edges": "read_edges",
        "editing": "Editor",
        "ends": "End Ends output_type",
        "execution_graph": (
            "EXECUTION_GRAPH EXECUTION_HINT is_execution_graph is_primitive refuse_execution_graph"
        ),
        "graph": "Graph LookUps SINKS with_bodies DEEPEST",
        "joined": "joined_numbers",
        "layer": "Layer",
        "layer_parts": "BODIES BODIES_OF LAYER_ORDER NET_ORDER PARTS",
        "layouts": "axis_names layout_spelling layout_text",
        "literals": "Value array_of",
        "model": "Model",
        "names": (
            "FreeNames body_path by_input named_inputs listed named_output output_keys "
            "output_names paired_by_name path_of tensor_keys"
        ),
        "origin": "Kind Origin Remark",
        "parts": (
            "BackEdge Edge Info LARGEST_ID MapEntry Port PortMap dims_of join_names "
            "read_back_edges read_dim read_info read_port_map read_ports split_names whole"
        ),
        "stamp": "stamp_of",
        "symbols": "keep_symbols own_names with_symbols",
        "turning": "Readings Ways is_on swaps_last ways_of",
    },
)
