"""Random documents of the IR grammar, with what no rule knows among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from vinoir.ir.text import escape
from vinoir.schemas import ElementType
from vinoir.schemas.packing import pack

WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")) | st.sampled_from('\n\t,\\<>&"'),
    max_size=8,
).map(lambda text: text.replace("\ufffe", "").replace("\uffff", ""))
TAGS = st.sampled_from(["extra", "attribute", "user_data", "Info", "x.y-z"])
BLANKS = st.sampled_from(["", "\n", "\n\t\t", " ", "\r\n  "])
COMMENTS = st.sampled_from(["", "<!-- a note -->", "<?keep this?>", "<!-- <layer/> -->"])
TYPES = st.sampled_from([kind for kind in ElementType if kind is not ElementType.DYNAMIC])
DIMS = st.lists(st.integers(0, 5), max_size=3)


@st.composite
def attributes(draw: st.DrawFn, **fixed: str) -> str:
    """Attributes in either quotes: those given, and perhaps one more."""
    pairs = list(fixed.items())
    if draw(st.booleans()):
        pairs.append(("further", draw(WORDS)))
    quoted = []
    for name, value in pairs:
        text = escape(value)
        single = draw(st.booleans())
        if single:
            text = text.replace("'", "&apos;")
        quote = "'" if single else '"'
        quoted.append(f" {name.replace('_in_', '-')}={quote}{text}{quote}")
    return "".join(quoted)


@st.composite
def trees(draw: st.DrawFn, tag: str | None = None, depth: int = 2) -> str:
    """An element with anything below it."""
    name = tag or draw(TAGS)
    head = draw(attributes(value=draw(WORDS), name=draw(WORDS)))
    inner = draw(st.lists(trees(depth=depth - 1), max_size=2)) if depth else []
    if not inner:
        return f"<{name}{head}{draw(st.sampled_from(['/>', ' />', f'></{name}>']))}"
    return f"<{name}{head}>{''.join(draw(BLANKS) + part for part in inner)}</{name}>"


@st.composite
def ports(draw: st.DrawFn, tag: str, first: int, count: int) -> str:
    """The ports of one side."""
    if not count:
        return ""
    lines = []
    for number in range(first, first + count):
        dims = "".join(
            f"{draw(BLANKS)}<dim>{size}</dim>" for size in draw(st.lists(st.integers(-1, 9)))[:3]
        )
        named = {"names": draw(WORDS)} if tag == "output" and draw(st.booleans()) else {}
        head = draw(attributes(id=str(number), precision=draw(TYPES).port, **named))
        lines.append(f"{draw(BLANKS)}<port{head}>{dims}{draw(BLANKS)}</port>")
    return f"{draw(BLANKS)}<{tag}>{''.join(lines)}{draw(BLANKS)}</{tag}>"


@st.composite
def graphs(draw: st.DrawFn, weights: bytearray, depth: int) -> str:
    """``<layers>`` and ``<edges>`` of a graph without cycles."""
    layers, edges, made = [], [], []
    ids = draw(st.lists(st.integers(0, 60), unique=True, max_size=5))
    for number in ids:
        kind = draw(st.sampled_from(["Parameter", "Const", "Add", "Odd", "Result"]))
        inputs = 0 if kind in ("Parameter", "Const") else draw(st.integers(0, 2))
        outputs = 0 if kind == "Result" else draw(st.integers(1, 2))
        data, body = "", ""
        if kind == "Const":
            element, shape = draw(TYPES), draw(DIMS)
            values: Any = np.zeros(shape, element.dtype)
            blob = pack(values, element)
            shown = draw(st.sampled_from([",", ", "])).join(map(str, shape))
            head = draw(
                attributes(
                    element_type=str(element), shape=shown, offset=str(len(weights)),
                    size=str(len(blob)),
                )
            )  # fmt: skip
            weights += blob + bytes(draw(st.integers(0, 2)))
            data = f"<data{head} />"
        elif draw(st.booleans()):
            data = f"<data{draw(attributes(axis=draw(WORDS)))} />"
        if kind == "Odd" and depth and draw(st.booleans()):
            body = f"<body>{draw(graphs(weights, depth - 1))}</body>"
            data += (
                f'<port_map><input external_port_id="0" internal_layer_id="0"'
                f"{draw(attributes())} /></port_map>"
            )
        info = draw(trees("rt_info")) if draw(st.booleans()) else ""
        head = draw(attributes(id=str(number), name=draw(WORDS), type=kind, version=draw(WORDS)))
        layers.append(
            f"<layer{head}>{draw(COMMENTS)}{data}{info}{draw(ports('input', 0, inputs))}"
            f"{draw(ports('output', inputs, outputs))}{body}{draw(BLANKS)}</layer>"
        )
        for port in range(inputs):
            if made and draw(st.booleans()):
                feeder, out = draw(st.sampled_from(made))
                head = draw(
                    attributes(
                        from_in_layer=str(feeder), from_in_port=str(out),
                        to_in_layer=str(number), to_in_port=str(port),
                    )
                )  # fmt: skip
                edges.append(f"<edge{head}/>")
        made += [(number, inputs + index) for index in range(outputs)]
    inside = "".join(draw(BLANKS) + draw(COMMENTS) + layer for layer in layers)
    across = "".join(draw(BLANKS) + edge for edge in edges)
    return f"<layers>{inside}{draw(BLANKS)}</layers>{draw(BLANKS)}<edges>{across}</edges>"


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, bytes]:
    """A document and its weights."""
    weights = bytearray()
    graph = draw(graphs(weights, 1))
    head = draw(attributes(name=draw(WORDS), version=draw(st.sampled_from(["10", "11", " 11"]))))
    info = draw(st.sampled_from(["", draw(trees("rt_info")), draw(trees("meta_data"))]))
    start = draw(st.sampled_from(["", '<?xml version="1.0"?>\n', "<!-- first -->\n"]))
    end = draw(COMMENTS) + draw(BLANKS)
    return f"{start}<net{head}>{graph}{draw(COMMENTS)}{info}</net>{end}", bytes(weights)
