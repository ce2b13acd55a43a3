"""What every operation shares: its registration, its attributes, its number of inputs.

A class named ``MaxPoolV8`` is the operation MaxPool-8: the name is the registration, the
annotated fields are the attributes under their XML names, the parameters of ``infer`` are the
inputs. Most operations first appear in the opset of their number and stay until the next
version of the same type; ``since`` and ``until`` say where that is not so.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    dataclass_transform,
    get_args,
    get_origin,
)

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

from ..schemas import Array, ElementType, IRError, Tensor
from ..schemas.attributes import Alias, NotBefore, Spelling
from ..schemas.shapes import NotKnownError
from ..schemas.tensor import Bounds
from .descriptions import described
from .fast_read import read_plainly
from .registry import Registry
from .value_bounds import carry

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)  # which has no public name

#: The last opset that holds whole networks; opset17 exists but lists only a few operations.
LATEST = 16
NEWEST = LATEST + 1

#: A kernel with its weights and shapes settled: arrays in, arrays out.
Kernel: TypeAlias = Callable[..., tuple[Array, ...]]

#: Types that a graph tells by their exact text: its ends, its variables, its bodies.
ROLES = frozenset(
    {"Assign", "Const", "If", "Loop", "Parameter", "ReadValue", "Result", "TensorIterator"}
)

#: The context of a validation that reads a file.
_READING = object()

_NAME = re.compile(r"([A-Za-z0-9_]{2,}?)V(\d+)")


class Attribute(NamedTuple):
    """What there is to say about one attribute."""

    name: str
    kind: str
    required: bool
    default: str | None
    choices: tuple[str, ...]
    description: str = ""


# Without it, type checkers would not look at the attributes of an operation that is made.
@dataclass_transform(kw_only_default=True)
class _Kind(ModelMetaclass):
    """What classes of operations are: Pydantic's, with a signature that can be read."""

    @property
    def __signature__(self) -> inspect.Signature:
        """The attributes, their types and their defaults; those that are needed come first."""
        kind: Any = self
        fields = sorted(kind.model_fields.items(), key=lambda row: not row[1].is_required())
        return inspect.Signature(
            [
                inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=inspect.Parameter.empty if field.is_required() else field.default,
                    annotation=_annotation(kind, field),
                )
                for name, field in fields
            ]
        )

    @__signature__.setter
    def __signature__(self, _: object) -> None:
        """Pydantic sets one that tells how attributes are read, when a class is first used."""


class Op(BaseModel, metaclass=_Kind):
    """One version of one operation: attributes, shape rule and kernel."""

    model_config = ConfigDict(
        frozen=True,
        # A file may hold more: ``read`` takes what it knows.
        extra="forbid",
        populate_by_name=True,
        arbitrary_types_allowed=True,
        # Most models use few operations: a class is made ready when it is first used.
        defer_build=True,
    )

    #: The type in the XML and the version in the specification's page name.
    xml_type: ClassVar[str] = ""
    number: ClassVar[int] = 0
    #: First and last opset that list it, where the rule of the module's docstring does not hold.
    since: ClassVar[int | None] = None
    until: ClassVar[int | None] = None
    #: The opset that OpenVINO writes, where it is not the first that lists it.
    canonical: ClassVar[int | None] = None
    #: Opsets between the two that do not list it, and further versions under which it is read.
    absent: ClassVar[frozenset[int]] = frozenset()
    also: ClassVar[frozenset[str]] = frozenset()
    #: The least and the greatest number of outputs (None: any number).
    output_count: ClassVar[tuple[int, int | None]] = (1, 1)
    #: Whether it is of OpenVINO's opsets, as against one that a plug-in brings.
    is_standard: ClassVar[bool] = False
    #: The file of its family; the folder of its specification.
    family: ClassVar[str] = ""
    #: The XML names in the order OpenVINO writes them, where the fields' order is another.
    written: ClassVar[tuple[str, ...]] = ()
    #: Whether partly known values go through it (see ``Tensor.bounds``), as they go through
    #: ``run``: in every input, or in some (by index), the others being known values.
    carries_sizes: ClassVar[bool | Literal["first"] | tuple[int, ...]] = False

    #: Inputs, by index, where plain numbers are meant to be of the first input's type.
    like_first: ClassVar[tuple[int, ...]] = ()

    #: Whether it gives other values each time it is run, so that nothing is known beforehand.
    is_random: ClassVar[bool] = False

    #: How many arrays as large as its outputs ``run`` holds beside them; more it asks for itself.
    rooms: ClassVar[int] = 0

    #: Whether ``run`` may give another number of rows than ``infer`` says.
    rows_vary: ClassVar[bool] = False

    registry: ClassVar[Registry[type[Op]]] = Registry()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        found = _NAME.fullmatch(cls.__name__)
        if not found:
            return
        cls.xml_type, cls.number = found[1], int(found[2])
        # A family too long for one file goes on in another, such as movement_gather.
        cls.family = cls.__module__.rsplit(".", 1)[-1].partition("_")[0]
        for name in ("since", "until", "canonical", "absent", "also"):
            if name not in cls.__dict__:  # not inherited: each version has its own opsets
                setattr(cls, name, Op.__dict__[name])
        cls.is_standard = cls.__module__.rpartition(".")[0] == __package__
        for name, field in cls.model_fields.items():
            # Where another's field has none, the name may mean something else there.
            field.description = field.description or (
                described(found[1], name) if cls.is_standard else None
            )
        # Another's operation may not have a name of ours, whether that was imported or not.
        operations = Op.registry.met if cls.is_standard else Op.registry
        known = operations.get((cls.xml_type, cls.number))
        if known is not None and known.__module__ != cls.__module__:
            raise TypeError(
                f"{cls.xml_type}-{cls.number} is already {known.__module__}.{known.__name__}"
            )
        Op.registry[cls.xml_type, cls.number] = cls
        _versions.cache_clear()
        _spellings.cache_clear()

    # Finding.

    @staticmethod
    def find(kind: str, version: str) -> type[Op] | None:
        """The operation that a layer of this type and version means, None if unknown.

        As OpenVINO, it takes a type in any letter case, except those that are roles in a graph.
        """
        found = _find(kind, version)
        if found is None and _plugins():
            found = _find(kind, version)
        return found

    @staticmethod
    def newest(kind: str, opset: int | None = None) -> type[Op] | None:
        """The newest version of a type, or the newest in an opset; None where there is none."""
        versions = dict.fromkeys(_versions(kind).values())
        there = [op for op in versions if opset is None or (op.since or op.number) <= opset]
        return there[-1] if there else None

    @classmethod
    def opsets(cls) -> tuple[str, ...]:
        """The versions under which a layer may name it, in order, OpenVINO's own name first."""
        found = [v for v, op in _versions(cls.xml_type).items() if op is cls]
        return tuple(sorted(found, key=lambda version: version != cls.version()))

    @classmethod
    def opset_numbers(cls) -> tuple[int, ...]:
        """The opsets that list it, in order."""
        named = (v for v in cls.opsets() if v not in cls.also)
        return tuple(sorted(int(v.removeprefix("opset")) for v in named))

    @classmethod
    def version(cls) -> str:
        """The version OpenVINO writes for it."""
        return f"opset{cls.canonical or cls.since or cls.number}"

    @classmethod
    def spec(cls) -> str:
        """Its name in the specification, such as MaxPool-8."""
        return f"{cls.xml_type}-{cls.number}"

    # Attributes.

    @classmethod
    def read(cls, data: Mapping[str, str]) -> Any:
        """Make one from the text of its attributes."""
        made = read_plainly(cls, Op, data, cls._before)
        return cls._read(data) if made is None else made

    @classmethod
    def _read(cls, data: Mapping[str, str]) -> Any:
        """``read`` by Pydantic; OpenVINO ignores what an operation does not have."""
        if cls.model_config.get("extra") == "forbid":
            names = cls.names()
            data = {name: text for name, text in data.items() if name in names}
        return cls.model_validate(dict(data), context=_READING)

    @classmethod
    def names(cls) -> dict[str, str]:
        """The field that each name of an attribute means: its own, and that in the XML."""
        fields = cls.model_fields
        return {name: name for name in fields} | {
            about.alias: name for name, about in fields.items() if about.alias
        }

    def with_(self, **changes: Any) -> Self:
        """A copy with other attributes, checked as a new one is; None: as if it was not given."""
        names = self.names()
        given = {name: getattr(self, name) for name in self.model_fields_set}
        given |= {names.get(name, name): value for name, value in changes.items()}
        return self.model_validate({name: x for name, x in given.items() if x is not None})

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[BaseModel], handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Validation with ours around it; a decorator costs a fifth more for each class."""
        return core_schema.with_info_wrap_validator_function(cls._validated, handler(source))

    @classmethod
    def _validated(
        cls,
        data: Any,
        handler: core_schema.ValidatorFunctionWrapHandler,
        info: core_schema.ValidationInfo[Any],
    ) -> Any:
        """An operation of its attributes; only what is read may have such as no layer may have."""
        from .strictness import at_attribute, explained

        try:
            made: Op = handler(cls._before(data))
        except ValidationError as error:
            raise explained(error, cls, cls.spec(), cls._others()) from None
        if info.context is not _READING:
            try:
                made.check_attributes()
            except IRError as error:
                raise at_attribute(error, cls, data) from None
        return made

    @classmethod
    def _before(cls, data: Any) -> Any:
        return cls.match_choices(cls.completed(dict(data))) if isinstance(data, dict) else data

    @classmethod
    def _others(cls) -> dict[str, type[Op]]:
        """The other versions of its type by their names in the specification, oldest first."""
        versions = dict.fromkeys(_versions(cls.xml_type).values())
        return {op.spec(): op for op in versions if op is not cls}

    def check_attributes(self) -> None:
        """Refuse attributes with which the operation takes no inputs at all.

        That is what its shape rule refuses where nothing is known of the inputs; another
        package's rule may have been written for known ones, and is not asked.
        """
        if not type(self).model_fields or not self.infer.__module__.startswith(__package__):
            return
        with suppress(NotKnownError):
            self.infer(*self.unknown_inputs())

    def unknown_inputs(self) -> list[Tensor]:
        """Inputs of which nothing is known, the fewest that go with these attributes."""
        _, least, most = self.arity()
        return [Tensor(ElementType.DYNAMIC)] * (max(least, 1) if most is None else least)

    @classmethod
    def completed(cls, data: dict[str, Any]) -> dict[str, Any]:
        """The attributes, with those that depend on others where a file leaves them out."""
        return data

    @classmethod
    def match_choices(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Bring choices to their usual letter case, and refuse those of later versions."""
        for name, field, rules in cls._choices():
            value = data.get(name)
            if not isinstance(value, str):
                continue
            choice = field.get(value.lower())
            if choice is None:
                raise ValueError(f'{name}="{value}" is not one of {", ".join(_members(field))}')
            for rule in rules:
                if rule.choice == choice and cls.number < rule.version:
                    raise ValueError(
                        f'{name}="{choice}" needs {cls.xml_type}-{rule.version}, '
                        f"this is {cls.spec()}"
                    )
            data[name] = choice
        return data

    @classmethod
    def _choices(cls) -> list[tuple[str, dict[str, str], list[NotBefore]]]:
        """The fields that are choices: name, lower-case text to choice, rules."""
        if "_choice_table" not in cls.__dict__:
            table = []
            for name, field in cls.model_fields.items():
                if get_origin(field.annotation) is Literal:
                    words = {str(word).lower(): str(word) for word in get_args(field.annotation)}
                    words |= {m.text: m.choice for m in field.metadata if isinstance(m, Alias)}
                    rules = [m for m in field.metadata if isinstance(m, NotBefore)]
                    table.append((field.alias or name, words, rules))
            cls._choice_table = table
        return cls._choice_table

    _choice_table: ClassVar[list[tuple[str, dict[str, str], list[NotBefore]]]] = []

    def attributes(self) -> dict[str, str]:
        """The attributes as OpenVINO writes them, in its order, defaults included."""
        texts = {
            field.alias or name: spell(field, value)
            for name, field in self.__class__.model_fields.items()
            if (value := getattr(self, name)) is not None
        }
        return {name: texts[name] for name in self.written if name in texts} | texts

    @classmethod
    def describe(cls) -> list[Attribute]:
        """Every attribute with its kind, default and allowed values."""
        rows = []
        for name, field in cls.model_fields.items():
            words: tuple[str, ...] = ()
            if get_origin(field.annotation) is Literal:
                words = tuple(map(str, get_args(_annotation(cls, field))))
            required = field.is_required()
            default = None if required or field.default is None else spell(field, field.default)
            say = field.description or ""
            rows.append(Attribute(field.alias or name, kind(field), required, default, words, say))
        return rows

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """What :meth:`describe` says, beside Pydantic's own words."""
        made = handler.resolve_ref_schema(handler(schema))
        for row in cls.describe():
            field = made["properties"][row.name]
            field["x-kind"] = row.kind
            if row.choices:
                field["enum"] = list(row.choices)
        return made | {"title": cls.spec(), "x-opsets": list(cls.opsets())}

    # Inputs.

    @classmethod
    def arity(cls) -> tuple[tuple[str, ...], int, int | None]:
        """Input names, the least number of inputs and the greatest (None: any number)."""
        return _arity(cls)

    # What an operation is.

    def infer(self, *inputs: Any, **_: Any) -> tuple[Tensor, ...]:
        """Types and shapes of the outputs, from what is known of the inputs."""
        raise NotImplementedError

    def run(self, *inputs: Any, **_: Any) -> tuple[Array, ...]:
        """The outputs, from the inputs: the readable definition of the operation."""
        raise NotImplementedError

    def multiply_adds(self, inputs: Sequence[tuple[int, ...]], output: tuple[int, ...]) -> int:
        """How many products are summed, from the shapes of the inputs and of the first output.

        None in an operation that passes over its elements one by one.
        """
        return 0

    def prepare(self, inputs: Sequence[Tensor]) -> Kernel:
        """A kernel for inputs of these types, shapes and known values; may be faster than run."""
        return self.run

    def bounds(self, lows: Sequence[Array], highs: Sequence[Array]) -> Sequence[Bounds] | None:
        """Least and greatest values of each output, from those of the inputs."""
        return list(zip(self.run(*lows), self.run(*highs), strict=True))

    def carry_sizes(self, *inputs: Any) -> Sequence[Array | None] | None:
        """The outputs for inputs that are arrays of named sizes; None where that says nothing."""
        return self.run(*inputs)

    @classmethod
    def may_vary(cls, index: int) -> bool:
        """Whether something is known of the outputs where this input is only partly known."""
        if isinstance(cls.carries_sizes, tuple):
            return index in cls.carries_sizes
        return index == 0 if cls.carries_sizes == "first" else cls.carries_sizes

    def infer_outputs(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """``infer``, with the number of inputs checked and values carried where they are known."""
        self.check_arity(len(inputs))
        outputs = self.infer(*inputs)
        if type(self).run is Op.run:
            return outputs  # such as a variable's: its inputs do not tell what it gives
        return carry(self, inputs, outputs)

    def check_arity(self, count: int) -> None:
        """Refuse a number of inputs that the operation does not take."""
        names, least, most = self.arity()
        if count < least or (most is not None and count > most):
            many = (
                f"{least} or more"
                if most is None
                else (str(least) if least == most else f"{least} to {most}")
            )
            raise IRError(f"{count} inputs, {self.spec()} takes {many} ({', '.join(names)})")


# Pydantic would read these annotations again for each of some 250 classes: a second of start.
Op.__annotations__.clear()


def _annotation(cls: Any, field: FieldInfo) -> Any:
    """The type of a field, without choices of later versions."""
    if get_origin(field.annotation) is not Literal:
        return field.annotation
    rules = [rule for rule in field.metadata if isinstance(rule, NotBefore)]
    later = {rule.choice for rule in rules if cls.number < rule.version}
    return Literal[tuple(word for word in get_args(field.annotation) if word not in later)]


def spell(field: FieldInfo, value: Any) -> str:
    """Print one attribute's value."""
    spelling = next((m for m in field.metadata if isinstance(m, Spelling)), None)
    return spelling.text(value) if spelling is not None else str(value)


def kind(field: FieldInfo) -> str:
    """The name of an attribute's kind."""
    spelling = next((m for m in field.metadata if isinstance(m, Spelling)), None)
    return spelling.kind if spelling is not None else "enum"


def _members(words: Mapping[str, str]) -> Iterable[str]:
    return dict.fromkeys(words.values())


@cache
def _arity(cls: type[Op]) -> tuple[tuple[str, ...], int, int | None]:
    names, least, most = [], 0, 0
    for parameter in list(inspect.signature(cls.infer).parameters.values())[1:]:
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        names.append(parameter.name)
        if parameter.kind is parameter.VAR_POSITIONAL:
            return tuple(names), least, None
        most += 1
        if parameter.default is parameter.empty:
            least += 1
    return tuple(names), least, most


@cache
def _versions(kind: str) -> dict[str, type[Op]]:
    """Version in the XML to class, for the operations of a type."""
    Op.registry.meet(kind)
    versions = [op for op in Op.registry.met.values() if op.xml_type == kind]
    versions.sort(key=lambda op: op.since or op.number)
    rows: dict[str, type[Op]] = {}
    for op, following in zip(versions, [*versions[1:], None], strict=False):
        first = op.since or op.number
        last = op.until or (
            (following.since or following.number) - 1 if following else max(first, LATEST)
        )
        rows.update({f"opset{n}": op for n in range(first, last + 1) if n not in op.absent})
        rows.update(dict.fromkeys(sorted(op.also), op))
    return rows


def _find(kind: str, version: str) -> type[Op] | None:
    found = _versions(kind) or _versions(_spellings().get(kind.lower(), ""))
    return found.get(version)


@cache
def _spellings() -> dict[str, str]:
    """Type in lower case to type as it is written, but for the roles."""
    return {name.lower(): name for name in Op.registry.types() - ROLES}


@cache
def _plugins() -> bool:
    """Import the operations that installed packages offer; True if there are any."""
    from importlib.metadata import entry_points

    offers = entry_points(group="vinoir.operations")
    for offer in offers:
        offer.load()
    return bool(offers)


def index_type(name: str, kind: ElementType) -> None:
    """Refuse an attribute that is the element type of indices, and of which those cannot be."""
    if kind not in (ElementType.I32, ElementType.I64):
        raise IRError(f"{name} is {kind}, it is i32 or i64")


def element_type(tensor: Tensor, *allowed: ElementType, what: str = "") -> None:
    """Refuse a tensor whose element type is known and not among those allowed."""
    if not tensor.type.is_dynamic and tensor.type not in allowed:
        whose = f" of the {what}" if what else ""
        raise IRError(f"element type {tensor.type}{whose} is not one of {', '.join(allowed)}")
