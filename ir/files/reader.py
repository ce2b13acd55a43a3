"""A file pair, or bytes, to a model."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from mmap import mmap
from os import PathLike
from pathlib import Path
from typing import IO, NamedTuple, TypeAlias

from lxml import etree

from ...schemas import IRError, UnreadableError, UnsupportedError, UsageError, Where
from ...schemas.packing import Buffer
from ..document import BODIES, Layer, Model, check_constant, read_info, with_bodies
from ..storage import Weights, beside, fetch_pair, identity, is_url, open_regular, open_weights
from ..text import at, encoding_of, parse

#: What ``read`` takes for the .xml and, beside bytes themselves, for the .bin.
Source: TypeAlias = "str | PathLike[str] | IO[bytes] | IO[str]"

#: No IR comes near this; a larger file is something else.
LARGEST_XML = 1 << 30

#: A pair is read anew so often while it is replaced.
_ATTEMPTS = 200
#: Seconds within which two writes may leave a file with the same time.
_TICK = 3
#: Versions that are upgraded when they are read.
_UPGRADED = range(2, 8)


def read(
    path: Source,
    weights: Source | Buffer | Weights | None = None,
    *,
    lenient: bool = False,
    need_weights: bool | None = None,
    keep_preprocess: bool = False,
) -> Model:
    """Read an IR: the .xml and, mapped, the .bin beside it.

    IR v2 to v7 is upgraded to the operations of today; ``Model.origin`` says what from, and what
    was not one to one.

    Args:
        path: The .xml; or its .bin, or a folder that holds one IR; or an open file.
        weights: The .bin, or its bytes, where it is not beside the .xml under the same name.
        lenient: Repair what OpenVINO reads and XML forbids; ``Model.repairs`` says what.
        need_weights: Refuse the model where bytes of a constant are missing; False: the error
            comes when the constant is asked for its value. None: so where there is no .bin at
            all, but a .bin that is too short is refused.
        keep_preprocess: Of IR v2 to v7: leave the means of ``<pre-process>`` to the caller, and
            say them in rt_info, where the model would take them off its input.

    Raises:
        UnreadableError: It is not an IR of version 2 to 7, 10 or 11.
        IRError: Something in it is wrong; the error says where.
    """
    if not isinstance(path, (str, PathLike)):
        given: object = path
        if not hasattr(given, "read"):
            raise UsageError(
                f"a path or an open file is wanted, not {type(path).__name__}",
                hint="ir.loads(xml, weights) takes a document itself"
                if isinstance(given, (bytes, bytearray, memoryview))
                else None,
            )
        held = None if weights is None else _weights(weights)
        given = _Given(content_of(path), held, _name(path))
        return _build(given, lenient, need_weights, keep_preprocess)
    xml, bin_ = find_pair(path)
    if weights is not None and not isinstance(weights, (str, PathLike)):
        source, held = read_pair(xml)[0], _weights(weights)
    else:
        source, held = read_pair(xml, bin_ if weights is None else weights, weights is not None)
    return _build(_Given(source, held, xml, str(bin_)), lenient, need_weights, keep_preprocess)


def loads(
    xml: bytes | str,
    weights: Buffer | Weights | None = None,
    *,
    lenient: bool = False,
    need_weights: bool | None = None,
    keep_preprocess: bool = False,
) -> Model:
    """Read an IR from memory: the document and the bytes of its constants."""
    if not isinstance(xml, (str, bytes, bytearray, memoryview)):
        raise UsageError(
            f"a document is text or bytes, not {type(xml).__name__}",
            hint="ir.read takes paths and open files",
        )
    source = _encoded(xml) if isinstance(xml, str) else bytes(xml)
    held = None if weights is None else _bytes(weights)
    return _build(_Given(source, held), lenient, need_weights, keep_preprocess)


def find_pair(path: str | PathLike[str]) -> tuple[Path | str, Path | str]:
    """The .xml and the .bin that a path means: either of the two, or a folder with one IR.

    A URL means itself, and what stands beside it.
    """
    if isinstance(path, str) and is_url(path):
        return beside(path, ".xml") if beside(path) == path else path, beside(path)
    given: object = path
    if not isinstance(given, (str, PathLike)):
        raise UsageError(f"the path of a model is wanted, not {type(given).__name__}")
    if not os.fspath(path):
        raise UsageError("the path of the model is empty")
    path = Path(path)
    try:
        if path.is_dir():
            found = sorted(path.glob("*.xml"))
            if len(found) != 1:
                names = ", ".join(file.name for file in found[:5]) or "none"
                raise UnreadableError(
                    f"a folder with {len(found)} .xml files ({names}), one is needed",
                    Where(str(path)),
                )
            path = found[0]
        elif path.suffix.lower() == ".bin":
            xml = path.with_suffix(".xml")
            if not xml.is_file():
                raise UnreadableError(f"no {xml.name} stands beside it", Where(str(path)))
            return xml, path
    except IRError:
        raise
    except (OSError, ValueError) as error:
        raise UnreadableError(f"cannot be opened: {error}", Where(str(path))) from None
    return path, path.with_suffix(".bin")


def read_pair(
    xml: Path | str, weights: str | PathLike[str] | None = None, needed: bool = False
) -> tuple[bytes, Weights | None]:
    """The document and, mapped, its .bin (None where there is none, unless it is needed).

    A writer may replace both in between. The .xml is looked at again when the .bin is mapped:
    where it is no longer the same, both are read anew, so that they belong together.
    """
    if isinstance(xml, str):
        return fetch_pair(xml, weights, needed, LARGEST_XML)
    for attempt in range(_ATTEMPTS):
        time.sleep(0 if attempt < 10 else 0.01)
        with _opened(xml) as (file, before):
            source = file.read()
            held = None
            if weights is not None and (needed or os.path.exists(weights)):
                held = open_weights(weights)
            if held is not None and held.identity == identity(before):
                raise UsageError(
                    f"{weights} would be both the document and its weights",
                    Where(str(xml)),
                    "weights= and --weights name the .bin",
                )
            if _is_still(xml, file, before, source):
                return source, held
    raise UnreadableError(
        f"was replaced {_ATTEMPTS} times while it was read", Where(str(xml)),
        "wait until whoever writes it has finished",
    )  # fmt: skip


def _is_still(xml: Path, file: IO[bytes], before: os.stat_result, source: bytes) -> bool:
    """Whether the open file still goes by its name, and still holds what was read."""
    try:
        now = os.stat(xml)
    except FileNotFoundError:
        return False
    if identity(now) != identity(before):
        return False
    if time.time() - now.st_mtime > _TICK:
        return True
    # Written just now: a further write may have left the same time.
    file.seek(0)
    return file.read(len(source) + 1) == source


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], os.stat_result]]:
    """A file of a size that a document may have, and what the system says of it."""
    with os.fdopen(open_regular(path), "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_size > LARGEST_XML:
            raise UnreadableError(
                f"{status.st_size} bytes are too many for a document", Where(str(path))
            )
        yield file, status


def content_of(file: IO[bytes] | IO[str]) -> bytes:
    """All of an open document."""
    content = file.read(LARGEST_XML + 1)
    source = _encoded(content) if isinstance(content, str) else bytes(content)
    if len(source) > LARGEST_XML:
        raise UnreadableError("more bytes than a document may have", Where(_name(file)))
    return source


def _encoded(text: str) -> bytes:
    """Text as the bytes that its declaration speaks of."""
    encoding = encoding_of(text[:400].encode("utf-8", "replace"))
    try:
        return text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return text.encode("utf-8", "surrogatepass")


def _name(file: object) -> str | None:
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else None


def _weights(weights: Source | Buffer | Weights) -> Weights:
    if isinstance(weights, (str, PathLike)):
        return open_weights(weights)
    # A map of a file has a place from which it is read, too.
    if isinstance(weights, (Weights, mmap)) or not hasattr(weights, "read"):
        return _bytes(weights)
    content = weights.read()
    if isinstance(content, str):
        raise UnreadableError(
            "weights are bytes, the file is open for text", Where(_name(weights))
        )
    return Weights(content)


def _bytes(weights: Buffer | Weights) -> Weights:
    return weights if isinstance(weights, Weights) else Weights(weights)


class _Given(NamedTuple):
    """A document, its weights, where it was read, and where a .bin was looked for."""

    source: bytes
    weights: Weights | None
    path: str | PathLike[str] | None = None
    bin_place: str | None = None


def _build(
    given: _Given, lenient: bool, need_weights: bool | None, keep_preprocess: bool
) -> Model:
    """Make the model of a document."""
    model = Model()
    source, model.weights, model.path, model.bin_place = given
    model.source = model.text = source
    if lenient:
        from ..text import repair

        model.text, model.repairs = repair(source)
    root = parse(model.text, model.place, lenient)
    model.version = _version(root, model)
    if model.version in _UPGRADED:
        from .older import Settings, upgrade

        upgrade(model, root, model.version, Settings(keep_preprocess, need_weights))
        return model
    model.name = root.get("name", "")
    model.load(root)
    for tag in ("meta_data", "quantization_parameters"):
        found = root.find(tag)
        setattr(model, tag, None if found is None else read_info(found))
    found = root.find("pre-process")
    model.pre_process = None if found is None else read_info(found)
    if need_weights is not False:
        _check_constants(model, root, absent=need_weights is None)
    return model


def _version(root: etree._Element, model: Model) -> int:
    """The version of the format, which is 10 or 11, or one that is upgraded."""
    text = root.get("version")
    with at(Where(model.place, root.sourceline), model.text, root):
        if text is None:
            raise UnreadableError('<net> has no version, an IR says version="10" or "11"')
        try:
            number = int(text) if len(text) < 10 and text == text.rstrip() else None
        except ValueError:
            number = None
        if number is not None and (number in (10, 11) or number in _UPGRADED):
            return number
        if number in (8, 9):
            raise UnsupportedError(
                f"IR version {number} never existed: 7 was followed by 10",
                hint="whatever wrote it is not OpenVINO; look at what the layers say",
            )
        if number == 1:
            raise UnsupportedError(
                "IR version 1 was written before 2018, and read by OpenVINO 2018 alone: it has "
                "no batch among its sizes, and an <input> in the place of an Input layer",
                hint="convert the original model again with OpenVINO 2022.1 or later",
            )
        if number is not None and number > 11:
            raise UnsupportedError(
                f"IR version {number} is newer than this reader, which knows up to 11",
                hint="write it with ov.serialize(model, path, version='IR_V11'), or update vinoir",
            )
        raise UnreadableError(f'<net> has version "{text}", an IR has 2 to 7, 10 or 11')


def _check_constants(model: Model, root: etree._Element, *, absent: bool) -> None:
    """Refuse missing bytes, as far as a Result or Assign needs the constant."""
    bad = _missing(model.constants, model, absent)
    if next(root.iter(*BODIES), None) is not None:
        for layer in model.layers:
            if layer.element is not None and len(layer.element) > 2:
                inner = [x for x in with_bodies(layer) if x.is_constant and x is not layer]
                bad += [(layer, error) for _, error in _missing(inner, model, absent)]
    if bad:
        reached = {id(layer) for layer in model.order()}
        for layer, error in bad:
            if id(layer) in reached:
                raise error


def _missing(
    constants: Iterable[Layer], model: Model, absent: bool
) -> list[tuple[Layer, IRError]]:
    """The constants whose bytes are not there, and what is wrong."""
    bad = []
    for layer in constants:
        try:
            check_constant(layer, model, absent=absent)
        except IRError as error:
            bad.append((layer, error))
    return bad


__all__ = ["find_pair", "loads", "parse", "read"]
