"""The bytes of a document, its tree, and where in the file each element stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from xml.parsers import expat

from lxml import etree

from ...schemas import Where
from .attributes import attributes_of
from .breach import TOLERATED, Breach, said
from .encoding import mark_of, taken_as
from .other_kinds import other_kind
from .scanner import Scanner

_DECLARATION = re.compile(rb"<\?xml[ \t\r\n](?:[^?]|\?(?!>))*\?>")
_VERSION = re.compile(rb"""[ \t\r\n]version[ \t\r\n]*=[ \t\r\n]*["']1\.[0-9]+["']""")
#: What is to be left as it is, however long, by how it begins: comments, plain text, instructions.
_CLOSED = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}
_BLANKS = re.compile(rb"[ \t\r\n]*")
#: What tools take without being asked: libxml2's limits.
LONGEST, DEEPEST = 10_000_000, 256
#: Of a longer value only the beginning is looked at.
_LOOKED_AT, _KEPT = 1_000_000, 1_000


class Source:
    """A document: its tree as far as it can be read, and its breaches of XML."""

    def __init__(self, data: bytes) -> None:
        self.breaches: list[Breach] = []
        #: How many more there are than are told, by their codes.
        self.left_out: Mapping[str, int] = {}
        self.offsets: dict[etree._Element, int] = {}
        self.root: etree._Element | None = None
        #: Elements that tags without their match are about; None where all match.
        self.torn: set[etree._Element] | None = None
        #: Elements whose attributes are not all understood.
        self.odd: set[etree._Element] = set()
        self._lines: list[int] | None = None
        #: The document as UTF-8, what no parser should see blanked out.
        self.text = self._whole = data
        #: Where pieces of long values were left out, and how many bytes.
        self._cuts: list[tuple[int, int]] = []
        if not data.strip(b"\0 \t\r\n"):
            what = f"{len(data)} bytes" + (" of blanks or NULs" if data else "")
            self._tell("IR101", f"the file has {what}, no document", 0, "write the model again")
            return
        other = other_kind(data)
        if other is not None:
            self._tell("IR101", other[0], 0, other[1])
            return
        self._decode()
        self._prolog()
        self._whole = self.text
        self._shorten()
        self._parse()

    def _tell(self, code: str, message: str, offset: int, hint: str | None = None) -> None:
        """Note something at a place of the whole document."""
        self.breaches.append(Breach(code, message, hint=hint, offset=offset))

    # To UTF-8.

    def _decode(self) -> None:
        """Turn the bytes into UTF-8."""
        data = self.text
        encoding, wrong = taken_as(data)
        if wrong is not None:
            hint = "save it as UTF-8, and remove encoding from the declaration"
            self._tell("IR112", wrong, 0, hint)
        if encoding == "utf-8-sig":
            self.text = data = b"   " + data[3:]  # blanks keep every place where it was
            self._mark, encoding = 3, "utf-8"
        elif mark_of(data) is not None:
            self._recode(encoding)
            return
        found = _DECLARATION.match(data.lstrip(b" \t\r\n")[:400])
        if found and not _VERSION.search(found[0]):
            self._tell("IR101", "the XML declaration has no version 1.0", 0, 'write version="1.0"')
        if encoding in ("utf-8", "utf8", "us-ascii", "ascii"):
            try:
                data.decode("utf-8")
            except UnicodeDecodeError as error:
                self._tell(
                    "IR111",
                    f"byte 0x{data[error.start]:02X} is not UTF-8",
                    error.start,
                    "save the file as UTF-8",
                )
        else:
            self._recode(encoding)

    def _recode(self, encoding: str) -> None:
        try:
            text = self.text.decode(encoding)
        except UnicodeError:
            text = self.text.decode(encoding, "replace")
            self._tell("IR111", f"the bytes are not all {encoding}", 0, "save the file as UTF-8")
        self.text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").encode(errors="replace")

    #: Length of the byte order mark.
    _mark = 0

    # Before the root.

    def _prolog(self) -> None:
        """Blank out what a parser should not see: declaration and DOCTYPE."""
        text = self.text
        blank = len(text) - len(text.lstrip(b" \t\r\n"))
        found = _DECLARATION.match(text, blank)
        position = 0
        if found:
            if blank > self._mark:
                self._tell(
                    "IR108",
                    f"{blank - self._mark} blank characters before the XML declaration",
                    0,
                    "begin the file with <?xml",
                )
            self._erase(blank, found.end())
            position = found.end()
        position = self._skip(position)
        if self.text[position : position + 9].upper() == b"<!DOCTYPE":
            self._doctype(position)

    def _skip(self, position: int) -> int:
        """Past blanks, comments and processing instructions."""
        text = self.text
        while True:
            if text[position : position + 1] in (b" ", b"\t", b"\r", b"\n"):
                found = _BLANKS.match(text, position)
                position = found.end() if found else position + 1
                continue
            for begin, end in ((b"<!--", b"-->"), (b"<?", b"?>")):
                if text.startswith(begin, position):
                    stop = text.find(end, position + len(begin))
                    break
            else:
                return position
            if stop < 0:
                return position
            position = stop + len(end)

    def _doctype(self, start: int) -> None:
        """Take a DOCTYPE out unread, so that no entity is ever expanded and no file is opened."""
        text = self.text
        depth, position, quote = 0, start, 0
        end = len(text)
        marks = re.compile(rb"""["'\[\]<>]|<!--""")
        while True:
            found = marks.search(text, position)
            if found is None:
                break
            mark, position = found[0], found.end()
            if mark in (b'"', b"'"):
                quote = text.find(mark, position)
                position = quote + 1 if quote >= 0 else end
            elif mark == b"[":
                depth += 1
            elif mark == b"]":
                depth -= 1
            elif mark == b">" and depth <= 0:
                end = position
                break
        declared = b"<!ENTITY" in text[start:end]
        what = " that declares entities" if declared else ""
        self._tell(
            "IR107", f"a DOCTYPE{what}; an IR needs none", start,
            "remove it: it can make other tools open files or expand entities",
        )  # fmt: skip
        self._erase(start, end)

    def _erase(self, start: int, end: int) -> None:
        piece = re.sub(rb"[^\r\n]", b" ", self.text[start:end])
        self.text = self.text[:start] + piece + self.text[end:]

    # Parsing.

    def _shorten(self) -> None:
        """Leave out most of values and texts so long that looking at them would take seconds."""
        text = self.text
        if len(text) < _LOOKED_AT:
            return
        pieces, done, cut = [], 0, 0
        step = _LOOKED_AT // 2
        closed = _closed(text)
        # The last mark before a place and the next after it: each byte is looked at once.
        before_it: dict[bytes, int] = {}
        after_it: dict[bytes, int] = {}
        for start in range(step, len(text), step):
            tag = max(text.rfind(b"<", start - step, start), before_it.get(b"<", -1))
            before_it[b"<"] = tag
            inside = bisect_right(closed, (start, len(text))) - 1
            in_closed = inside >= 0 and start < closed[inside][1]
            for opening, closing in ((b'"', b'"'), (b"'", b"'"), (b">", b"<")):
                found = text.rfind(opening, start - step, start)
                before_it[opening] = first = max(found, before_it.get(opening, -1))
                if after_it.get(closing, -1) < start:
                    found = text.find(closing, start)
                    after_it[closing] = len(text) if found < 0 else found
                last = after_it[closing]
                if in_closed or start < done or first < done:
                    continue
                if first < 0 or last - first < _LOOKED_AT or tag > first:
                    continue
                before = text[max(first - 8, 0) : first].rstrip()
                if opening != b">" and not before.endswith(b"="):
                    continue
                length = last - first - 1
                if length >= LONGEST:
                    what = "a text" if opening == b">" else "an attribute"
                    message = f"{what} has {length} bytes, usual parsers take {LONGEST}"
                    self._tell("IR115", message, first + 1)
                self._cuts.append((first + 1 + _KEPT - cut, length - _KEPT))
                pieces.append(text[done : first + 1 + _KEPT])
                cut += length - _KEPT
                done = last
                break
        if pieces:
            self.text = b"".join([*pieces, text[done:]])

    def _parse(self) -> None:
        for huge in (False, True):
            parser = etree.XMLParser(
                resolve_entities=False, no_network=True, load_dtd=False, huge_tree=huge,
                collect_ids=False, remove_comments=True, remove_pis=True,
            )  # fmt: skip
            try:
                self.root = etree.fromstring(self.text, parser)
            except (etree.XMLSyntaxError, ValueError) as error:
                failed = error
                continue
            if huge:
                self._excess()
            return
        scan = Scanner(self.text).run()
        self.root, self.offsets = scan.root, scan.offsets
        self.torn, self.odd, self.left_out = scan.torn, scan.odd, scan.left_out
        for breach in scan.breaches:
            moved = sum(length for place, length in self._cuts if place <= (breach.offset or 0))
            self.breaches.append(breach._replace(offset=(breach.offset or 0) + moved))
        if not scan.breaches and not self.breaches:
            line, column = getattr(failed, "position", (1, 1))
            self._tell("IR101", said(failed), self._offset(line, column))

    def _excess(self) -> None:
        """Tell what made the parser ask for more than its usual limits."""
        deep = False
        stack = [(self.root, 1)]
        while stack:
            element, depth = stack.pop()
            if element is None:
                continue
            if depth > DEEPEST and not deep:
                deep = True
                message = f"elements are nested more than {DEEPEST} deep"
                self.breaches.append(Breach("IR114", message, element))
            for name, value in attributes_of(element).items():
                if len(value) >= LONGEST:
                    message = (
                        f"attribute {name} has {len(value)} characters, usual parsers take "
                        f"{LONGEST}"
                    )
                    self.breaches.append(Breach("IR115", message, element, None, str(name)))
            stack.extend((child, depth + 1) for child in element)

    # Places.

    def find(self, elements: Iterable[etree._Element]) -> None:
        """Work out where these elements stand, in one pass."""
        wanted = {element for element in elements if element not in self.offsets}
        if not wanted or self.root is None:
            return
        rows = enumerate(self.root.iter("*"))
        ranks = {rank: element for rank, element in rows if element in wanted}
        parser = expat.ParserCreate()
        parser.ordered_attributes = True
        counter = 0

        def start(_: str, __: object) -> None:
            nonlocal counter
            element = ranks.get(counter)
            counter += 1
            if element is not None:
                self.offsets[element] = parser.CurrentByteIndex

        parser.StartElementHandler = start
        try:
            parser.Parse(self.text, True)
        except expat.ExpatError:
            return  # lines are still known from the tree

    def place(
        self, element: etree._Element | None, attribute: str | None, offset: int | None
    ) -> tuple[int | None, int | None]:
        """Line and column, of an attribute where it is in the element's tag."""
        if offset is None:
            if element is None:
                return None, None
            offset = self.offsets.get(element)
            if offset is None:
                return element.sourceline, None
            if attribute is not None:
                offset = self._attribute(offset, attribute)
            offset += sum(length for place, length in self._cuts if place <= offset)
        if self._lines is None:
            self._lines = [0, *(match.end() for match in re.finditer(rb"\n", self._whole))]
        line = bisect_right(self._lines, offset)
        begin = self._lines[line - 1]
        if offset - begin > 10_000:
            return line, offset - begin + 1
        return line, len(self._whole[begin:offset].decode("utf-8", "replace")) + 1

    def _attribute(self, offset: int, name: str) -> int:
        tag = self.text[offset : offset + 10_000]
        found = re.search(rb"""\s""" + re.escape(name.encode()) + rb"""\s*=\s*["']""", tag)
        end = tag.find(b">")
        return offset + found.start() + 1 if found and (end < 0 or found.start() < end) else offset

    def _offset(self, line: int, column: int) -> int:
        position = 0
        for _ in range(line - 1):
            position = self.text.find(b"\n", position) + 1
        return position + max(column - 1, 0)


__all__ = ["Source"]


def _closed(text: bytes) -> list[tuple[int, int]]:
    """From where to where comments and the like go; each byte is looked at once or twice."""
    spans: list[tuple[int, int]] = []
    ends, position = dict(_CLOSED), 0
    while ends:
        found = re.compile(b"|".join(map(re.escape, ends))).search(text, position)
        if found is None:
            break
        end = text.find(ends[found[0]], found.end())
        if end < 0:  # nor does any after it end
            del ends[found[0]]
            position = found.end()
            continue
        position = end + len(ends[found[0]])
        spans.append((found.start(), position))
    return spans


def breaches(document: bytes, file: str | None) -> list[tuple[Breach, Where]]:
    """The breaches of XML in a document that are not tolerated, in the order of the file."""
    source = Source(document)
    found = [breach for breach in source.breaches if breach.code not in TOLERATED]
    source.find(breach.element for breach in found if breach.element is not None)
    rows: dict[tuple[object, ...], tuple[Breach, Where]] = {}
    for breach in found:
        line, column = source.place(breach.element, breach.attribute, breach.offset)
        layer = None if breach.offset is None else layer_around(breach.element)
        where = Where(file, line, column)
        if layer is not None:
            text = layer.get("id", "")
            number = int(text) if re.fullmatch("[0-9]{1,18}", text) else None
            kind = layer.get("name"), layer.get("type"), layer.get("version")
            where = Where(file, line, column, number, *kind)
        rows.setdefault((breach.code, line, column, breach.message), (breach, where))
    return sorted(rows.values(), key=lambda row: (row[1].line or 0, row[1].column or 0))


def layer_around(element: etree._Element | None) -> etree._Element | None:
    """The ``<layer>`` that an element is in."""
    while element is not None and element.tag != "layer":
        element = element.getparent()
    return element
