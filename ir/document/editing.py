"""Changes of a model in short verbs; each is an edit as a patch file has it.

Example::

    model.edit.rename("x", "image")          # one, at once
    with model.edit as edit:                 # several, and shapes inferred once
        edit.insert("ReLU", after="conv1")
        edit.bridge("dropout")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from ...schemas import UsageError
from ...schemas.types import TypeLike
from ..faces import door
from .graph import Graph
from .layer import Layer
from .parts import Port

if TYPE_CHECKING:
    from ...layers.base import Op

#: A layer, or its name or id.
LayerLike: TypeAlias = "Layer | str | int"
#: A tensor: its name, that of a layer with one output, ``LAYER:INDEX``, a port, or a layer.
TensorLike: TypeAlias = "Layer | Port | str"

_begin = door("surgery", "Session")
_body_at = door("surgery", "body_at")


class Editor:
    """The verbs that change a model itself.

    Types and shapes are inferred anew after each verb; in a ``with``, once at its end. Where a
    layer does not accept its inputs then, the error names it; the model stays as it was changed,
    so that the next verb may mend it. To try something, change a copy: ``model.copy()``.

    A layer or a port of a body says which graph is edited; of a body's layers that are named,
    ``within`` does.
    """

    def __init__(self, model: Graph) -> None:
        self._model = model
        self._session: Any = None

    def __repr__(self) -> str:
        verbs = ", ".join(name for name in vars(Editor) if not name.startswith("_"))
        return f"<editor of {self._model!r}: {verbs}>"

    def __enter__(self) -> Self:
        self._session = _begin(self._model)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        session, self._session = self._session, None
        session.end(infer=kind is None)

    def _graph(self, within: str | None, *given: Any) -> str | Graph | None:
        """The body that is edited: as named, or that of the layers and ports that are given.

        An edit names these by their ids, which mean other layers in any other graph.
        """
        owners = [one.layer if isinstance(one, Port) else one for one in given]
        layers = [one for one in owners if isinstance(one, Layer)]
        if not layers:
            return within
        graph = layers[0].graph if within is None else _body_at(self._model, within)
        for layer in layers:
            own = layer.graph
            if own is None or own.model is not self._model or not layer.is_in_graph:
                raise UsageError(
                    "it is not in the model that is edited",
                    layer.where,
                    "take the layer from that model: model[name]",
                )
            if own is not graph:
                place = "the model itself" if own is self._model else "another body"
                raise UsageError(
                    f"it is in {place}, not in the graph that is edited",
                    layer.where,
                    "an edit is of one graph, the model or a body: name what is there",
                )
        return None if graph is self._model else graph

    def _do(self, verb: str, within: str | Graph | None, *args: Any, **entry: Any) -> Any:
        """Carry out one verb of a session; what it made."""
        if self._session is not None:
            return getattr(self._session, verb)(within, *args, **entry)
        session, done = _begin(self._model), False
        try:
            made = getattr(session, verb)(within, *args, **entry)
            done = True
        finally:
            session.end(infer=done)
        return made

    def _edit(self, op: str, within: str | Graph | None, **entry: Any) -> Any:
        """Carry out an edit as a patch file has it."""
        given = {name: value for name, value in entry.items() if value is not None}
        return self._do("apply", within, {"op": op, **given})

    def insert(
        self,
        what: str | Op,
        *,
        after: TensorLike | None = None,
        before: Port | str | None = None,
        inputs: Iterable[Any] = ("@",),
        name: str | None = None,
        version: str | None = None,
        output: int = 0,
        within: str | None = None,
        **attributes: Any,
    ) -> Layer:
        """Put a layer behind a tensor, or before an input; the layer is handed back.

        Args:
            what: Its type, or an operation with its attributes.
            after: The tensor; what it fed is fed by the layer.
            before: The input, as a port or ``LAYER:INDEX``.
            inputs: What feeds it: ``"@"`` is the tensor at that place, others are named; arrays
                and numbers become constants.
            name: Its name; its type, if none is given.
            version: Its opset; that of the newest version, if none is given.
            output: Which of its outputs is handed on.
            within: The layer whose body is meant, such as ``loop`` or ``if/then_body``.
            attributes: Of the new layer.
        """
        fed = list(inputs)
        made: Layer = self._edit(
            "insert", self._graph(within, after, before, *fed), after=_tensor(after),
            before=_input(before), name=name, inputs=list(map(_fed, fed)), output=output,
            **_meant(what, version, attributes),
        )  # fmt: skip
        return made

    def replace(
        self,
        layer: LayerLike,
        what: str | Op,
        *,
        inputs: Iterable[Any] | None = None,
        name: str | None = None,
        version: str | None = None,
        within: str | None = None,
        **attributes: Any,
    ) -> Layer:
        """Put a new layer in the place of one; it takes its inputs, unless others are named."""
        fed = None if inputs is None else list(inputs)
        made: Layer = self._edit(
            "replace-layer", self._graph(within, layer, *(fed or ())), layer=_layer(layer),
            name=name, inputs=None if fed is None else list(map(_fed, fed)),
            **_meant(what, version, attributes),
        )  # fmt: skip
        return made

    def bridge(
        self, layer: LayerLike, *, input: int | None = None, within: str | None = None
    ) -> None:
        """Take a layer out; what it fed is fed by its first input that is no constant."""
        self._edit("bypass", self._graph(within, layer), layer=_layer(layer), input=input)

    def remove(self, *layers: LayerLike, within: str | None = None) -> None:
        """Take layers out, and what fed only them; nothing that is left may need them."""
        self._do("remove", self._graph(within, *layers), list(map(_layer, layers)))

    def rename(self, old: TensorLike, new: str, *, within: str | None = None) -> None:
        """Rename an input, output, layer, tensor or variable, and all that goes by its name."""
        graph = self._graph(within, old)
        if isinstance(old, Layer):
            self._edit("rename", graph, layer=old.id, to=new)
        elif isinstance(old, Port):
            self._edit("rename", graph, tensor=_tensor(old), to=new)
        else:
            self._edit("rename", graph, any=old, to=new)

    def set(self, layer: LayerLike, *, within: str | None = None, **attributes: Any) -> None:
        """Give a layer attributes by name and value; None: as if the file did not say it."""
        self._do("set", self._graph(within, layer), _layer(layer), attributes)

    def constant(
        self,
        layer: LayerLike,
        value: Any = None,
        type: TypeLike | None = None,
        *,
        within: str | None = None,
    ) -> None:
        """Give a constant another value, another type, or both."""
        self._do("constant", self._graph(within, layer), _layer(layer), value, type)

    def connect(
        self, source: TensorLike, target: Port | str, *, within: str | None = None
    ) -> None:
        """Feed an input (a port, or ``LAYER:INDEX``) from another tensor."""
        entry = {"from": _tensor(source), "to": _input(target)}
        self._edit("connect", self._graph(within, source, target), **entry)

    def output(self, tensor: TensorLike, name: str | None = None) -> Layer:
        """Hand a tensor out, as one more output of the model."""
        graph = self._graph(None, tensor)
        made: Layer = self._edit("add-output", graph, tensor=_tensor(tensor), name=name)
        return made

    def batch(
        self, size: int | str = "?", inputs: Iterable[str] | None = None, *, prove: bool = True
    ) -> None:
        """Let inputs take so many samples at once, and layers that say the old number go by it.

        Args:
            size: 8, ``1..8``, ``?`` for any, or a name.
            inputs: Those that take samples; not given: all that take as many as the first.
            prove: Whether it is run on random samples, to see that none depends on another.
        """
        chosen = None if inputs is None else list(inputs)
        self._edit("set-batch", None, batch=size, inputs=chosen, prove=prove)


def _layer(layer: LayerLike) -> str | int:
    """A layer as an edit names it."""
    return layer.id if isinstance(layer, Layer) else layer


def _tensor(tensor: TensorLike | None) -> str | None:
    """A tensor as an edit names it, so that no other is meant."""
    if isinstance(tensor, Layer):
        return f"{tensor.name}:0#{tensor.id}"
    if not isinstance(tensor, Port):
        return tensor
    source = tensor.source
    if source is None:
        raise UsageError(f"{tensor!r} is fed by nothing")
    return _placed(source)


def _input(port: Port | str | None) -> str | None:
    """An input as an edit names it."""
    return _placed(port) if isinstance(port, Port) else port


def _placed(port: Port) -> str:
    index, layer = port.index, port.layer
    assert layer is not None  # or it had no index
    return f"{layer.name}:{index}#{layer.id}"


def _fed(value: Any) -> Any:
    """What feeds an input, as an edit names it: a tensor, or the value of a constant."""
    tensor = isinstance(value, (Layer, Port, str, Mapping))
    return _tensor(value) if tensor and not isinstance(value, Mapping) else (
        value if tensor else {"constant": value}
    )  # fmt: skip


def _meant(what: str | Op, version: str | None, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The operation of a new layer, as an edit names it."""
    if isinstance(what, str):
        return {"type": what, "version": version, "attributes": dict(attributes)}
    return {
        "type": what.xml_type,
        "version": version or what.version(),
        "attributes": {**what.attributes(), **attributes},
    }
