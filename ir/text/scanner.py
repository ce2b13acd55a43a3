"""A document that is not well-formed, read as far as it goes.

Every breach of XML is told with its place; what can be understood becomes the same tree that
a parser would have made. Depth and number of complaints are bounded, the work is one pass.
What is understood in spite of a breach, as OpenVINO does, is read on however often it comes.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice

from lxml import etree

from ...schemas.printing import shown
from .breach import Breach

#: Elements deeper than this are told once and left out.
DEEPEST = 256
#: References in one value that are resolved; names and numbers have no more.
_MOST_REFERENCES = 10_000
#: A file that is not XML at all would have as many complaints as bytes: after so many the rest
#: is not read. Those that leave no doubt of what is meant are not among them.
MOST = 50
#: Of one kind so many are told with their place, more are counted.
MOST_TOLD = 1000
#: Attributes of one element that are kept; no operation has as many.
MOST_ATTRIBUTES = 1000

_NAME = r"[A-Za-z_:\x80-\xff][\w:.\-\x80-\xff]*"
_OPEN = re.compile(rf"<({_NAME})")
_CLOSE = re.compile(rf"</({_NAME})\s*>")
_BLANK = re.compile(r"[ \t\r\n]*")
_ATTRIBUTE = re.compile(rf"""({_NAME})[ \t\r\n]*=[ \t\r\n]*(?:"([^"<]*)"|'([^'<]*)')""")
_QUOTED = re.compile(rf"""({_NAME})[ \t\r\n]*=[ \t\r\n]*(["'])""")
_AMPERSAND = re.compile(r"&(?:(#x[0-9A-Fa-f]+|#[0-9]+|[A-Za-z_][\w.\-]*);)?")
#: Control characters, and U+FFFE and U+FFFF by their bytes.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_PREDEFINED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
#: They hold no elements: one that stands in them shows that their end was forgotten.
_LEAVES = frozenset({"edge", "data", "dim"})
#: What shows that the end of another element was forgotten, where it stands directly in it.
_NEVER_IN = frozenset(
    {("layer", "layer"), ("port", "port"), ("input", "output"), ("output", "input"),
     ("layers", "edges"), ("port", "layer"), ("input", "layer"), ("output", "layer")}
)  # fmt: skip
#: Tags of the structure: one of these closes nothing else by a slip of the pen.
_TAGS = frozenset(
    {"net", "layers", "layer", "edges", "edge", "input", "output", "port", "dim", "data", "body",
     "port_map", "back_edges", "rt_info"}
)  # fmt: skip
#: A tag that begins on a later line: where an attribute's closing quote was forgotten.
_NEXT_TAG = re.compile(r"\n[ \t\r]*<")


@dataclass
class Scan:
    """What was understood of a document."""

    root: etree._Element | None = None
    offsets: dict[etree._Element, int] = field(default_factory=dict)
    breaches: list[Breach] = field(default_factory=list)
    #: How many more there are, by their codes.
    left_out: Counter[str] = field(default_factory=Counter)
    #: Elements whose tags do not match, or that were open where others did not or where the
    #: scan ended; None without.
    torn: set[etree._Element] | None = None
    #: Elements of which not every attribute was understood.
    odd: set[etree._Element] = field(default_factory=set)


class Scanner:
    """One pass over the bytes, each taken for a character."""

    def __init__(self, data: bytes) -> None:
        self.text = data.decode("latin-1")
        self.scan = Scan()
        self.stack: list[etree._Element] = []
        self.deeper: list[str] = []  # open elements beyond the depth that is kept
        self.told_depth = False
        self.pieces: list[str] = []  # text since the last tag
        #: Behind it the file has no tag any more, not even the end of one.
        self.last_bracket = max(self.text.rfind("<"), self.text.rfind(">"))
        self.odd = False  # whether an attribute of the tag that is read was not understood
        self.told = Counter[str]()  # how many breaches, by their codes
        self.unclear = 0  # how many leave doubt of what is meant
        self.next_tag = -1  # where the tag begins that was last looked for on a later line

    def run(self) -> Scan:
        """Read to the end."""
        text, position = self.text, 0
        end = len(text)
        while position < end and self.unclear < MOST:
            start = text.find("<", position)
            if start < 0:
                self._characters(position, end)
                break
            self._characters(position, start)
            position = self._markup(start)
        if self.unclear < MOST:
            self._finish()
        elif text[position:].strip(" \t\r\n"):
            self._give_up(position)
        return self.scan

    # Telling.

    def _tell(
        self,
        code: str,
        message: str,
        offset: int,
        hint: str | None = None,
        *,
        clear: bool = False,
    ) -> None:
        """Note a breach; ``clear``: there is no doubt of what is meant."""
        if not clear:
            self.unclear += 1
            if self.unclear > MOST:
                return
        element = self.stack[-1] if self.stack else None
        if code in ("IR102", "IR103"):
            self._tear()
        self.told[code] += 1
        if self.told[code] > MOST_TOLD:
            self.scan.left_out[code] += 1
            return
        self.scan.breaches.append(Breach(code, message, element, hint=hint, offset=offset))

    def _tear(self) -> None:
        """Keep in mind that what is open may not be what it seems."""
        self.scan.torn = (self.scan.torn or set()).union(self.stack)

    def _give_up(self, position: int) -> None:
        """Say that the rest is not read."""
        self._settle()
        self._tear()
        message = (
            f"line {self._line(position)} and what follows are not looked at: there are {MOST} "
            "breaches of XML before"
        )
        hint = "mend these first, then check again"
        self.scan.breaches.append(Breach("IR101", message, hint=hint, offset=position))

    # Between tags.

    def _characters(self, start: int, end: int) -> None:
        if start == end:
            return
        text = self.text[start:end]
        if not text.strip(" \t\r\n"):
            return
        value = self._decoded(text, start)
        if not self.stack:
            begin = start + len(text) - len(text.lstrip(" \t\r\n"))
            where = "before <net>" if self.scan.root is None else "after the end of <net>"
            nul = text.strip(" \t\r\n\0") == ""
            what = "NUL bytes" if nul else f"text {shown(_utf8(text.strip())[:40])}"
            self._tell("IR109", f"{what} {where}", begin, "remove what stands outside <net>")
            return
        if self.deeper:
            return
        self.pieces.append(value)

    def _settle(self) -> None:
        """Give the text since the last tag to the element that it stands in."""
        if not self.pieces:
            return
        value = "".join(self.pieces)
        self.pieces.clear()
        element = self.stack[-1]
        last = next(element.iterchildren(reversed=True), None)
        if last is None:
            element.text = value
        else:
            last.tail = value

    def _decoded(self, raw: str, offset: int) -> str:
        """Text with its references resolved, those that XML knows."""
        found = _FORBIDDEN.search(raw)
        if found and not (not self.stack and raw.strip(" \t\r\n\0") == ""):
            self._tell(
                "IR110",
                f"{'control ' if len(found[0]) == 1 else ''}character "
                f"U+{ord(_utf8(found[0])):04X}, which XML does not allow",
                offset + found.start(),
                "remove the character",
                clear=True,
            )
        if "&" in raw:
            raw = _AMPERSAND.sub(
                lambda match: self._reference(match, offset), raw, _MOST_REFERENCES
            )
        return _utf8(_FORBIDDEN.sub("", raw))

    def _reference(self, match: re.Match[str], offset: int) -> str:
        name, place = match[1], offset + match.start()
        if name is None:
            self._tell("IR106", "a bare & in the text", place, "write &amp;", clear=True)
            return "&"
        if name.startswith("#"):
            digits = name[1:]
            code = int(digits[1:], 16) if digits[0] == "x" else int(digits[:9])
            if code in (9, 10, 13) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE:
                return chr(code).encode().decode("latin-1")
            if 0x10000 <= code < 0x110000:
                return chr(code).encode().decode("latin-1")
            message = f"&{name}; is a character that XML does not allow"
            self._tell("IR110", message, place, clear=True)
            return ""
        if name in _PREDEFINED:
            return _PREDEFINED[name]
        self._tell(
            "IR106",
            f"&{name}; is an entity; OpenVINO takes it literally, other tools expand or refuse it",
            place,
            f"write &amp;{name}; or the text that is meant",
            clear=True,
        )
        return match[0]

    # Markup.

    def _markup(self, start: int) -> int:
        text = self.text
        if text.startswith("</", start):
            return self._close(start)
        if text.startswith("<!--", start):
            return self._comment(start)
        if text.startswith("<![CDATA[", start):
            end = text.find("]]>", start)
            return end + 3 if end >= 0 else self._unfinished("a CDATA section", start)
        if text.startswith("<?", start):
            if text[start + 2 : start + 6] in ("xml ", "xml\t", "xml?"):
                self._tell("IR101", "an XML declaration that is not at the start", start)
            end = text.find("?>", start)
            return end + 2 if end >= 0 else self._unfinished("a processing instruction", start)
        if text.startswith("<!", start):
            self._tell("IR101", f"a declaration {shown(text[start : start + 12])} inside", start)
            end = text.find(">", start)
            return end + 1 if end >= 0 else len(text)
        return self._open(start)

    def _unfinished(self, what: str, start: int) -> int:
        self._tell("IR102", f"the file ends inside {what}{self._inside()}", start)
        return len(self.text)

    def _comment(self, start: int) -> int:
        end = self.text.find("-->", start + 4)
        if end < 0:
            return self._unfinished("a comment", start)
        double = self.text.find("--", start + 4, end + 1)
        if 0 <= double < end:
            self._tell("IR101", "-- inside a comment, which XML does not allow", double)
        return end + 3

    def _close(self, start: int) -> int:
        found = _CLOSE.match(self.text, start)
        if found is None:
            end = self.text.find(">", start)
            following = self.text.find("<", start + 1)
            if end < 0 and following < 0:
                self._tell("IR102", f"the file ends inside a closing tag{self._inside()}", start)
                return len(self.text)
            self._tell("IR101", "a closing tag that is not well-formed", start)
            name = re.match(rf"</\s*({_NAME})", self.text[start : start + 200])
            if name:
                self._leave(name[1], start)
            if end < 0 or 0 <= following < end:
                return following
            return end + 1
        self._leave(found[1], start)
        return found.end()

    def _leave(self, name: str, start: int) -> None:
        if self.deeper:
            if self.deeper[-1] == name:
                self.deeper.pop()
                return
            if name in self.deeper:
                self._tell("IR103", f"</{name}> closes <{self.deeper[-1]}>", start)
                while self.deeper.pop() != name:
                    pass
                return
        self._settle()
        wanted = _tag(name)
        if self.stack and self.stack[-1].tag == wanted:
            self.stack.pop()
            return
        tags = [str(element.tag) for element in self.stack]
        if wanted in tags:
            self._forgotten(f"</{name}>", start)
            self.deeper.clear()
            while str(self.stack.pop().tag) != wanted:
                pass
            return
        inner = f"; <{tags[-1]}> is open" if tags else ""
        self._tell("IR103", f"</{name}> closes nothing{inner}{self._inside()}", start)
        near = tags and (tags[-1].lower() == wanted.lower() or _alike(tags[-1], wanted))
        if near and wanted not in _TAGS:
            self.stack.pop()

    def _forgotten(self, what: str, start: int) -> None:
        """Tell that the innermost element has no end, where that shows or where it begins."""
        inner = self.stack[-1]
        tag, begin = str(inner.tag), self.scan.offsets[inner]
        if tag in _LEAVES:
            message = f"<{tag}> has no end before {what} of line {self._line(start)}"
            self._tell("IR103", message + self._inside(), begin, f"close it with /> or </{tag}>")
            return
        self._tell(
            "IR103",
            f"{what} where <{tag}> of line {self._line(begin)} is still open{self._inside()}",
            start,
            f"close it with </{tag}>",
        )

    def _open(self, start: int) -> int:
        text = self.text
        found = _OPEN.match(text, start)
        if found is None:
            if start + 1 >= len(text):
                self._tell("IR102", f"the file ends inside a tag{self._inside()}", start)
            else:
                self._tell("IR104", "a bare < in the text", start, "write &lt;")
            return start + 1
        name, position = found[1], found.end()
        attributes: dict[str, str] = {}
        self.odd = False
        while True:
            position = _blank(text, position)
            if self.unclear >= MOST:
                self._enter(name, attributes, start, closed=False)
                return position
            if text.startswith("/>", position):
                self._enter(name, attributes, start, closed=True)
                return position + 2
            if text.startswith(">", position):
                self._enter(name, attributes, start, closed=False)
                return position + 1
            if position >= len(text):
                if self.scan.breaches and self.scan.breaches[-1].code == "IR102":
                    return position  # told at the attribute that was cut
                shell = f"<{name}>{_of(attributes)}"
                self._tell("IR102", f"the file ends inside the tag {shell}{self._inside()}", start)
                return position
            after = self._attribute(name, attributes, position, start)
            if after is None:
                # The rest of the tag is not understood: go on behind it.
                end, following = text.find(">", position), text.find("<", position)
                closed = end >= 0 and text[end - 1] == "/"
                if following >= 0 and (end < 0 or following < end):
                    self._enter(name, attributes, start, closed=False)
                    return following
                if end < 0:
                    return len(text)
                self._enter(name, attributes, start, closed=closed)
                return end + 1
            position = after

    def _attribute(
        self, tag: str, attributes: dict[str, str], position: int, start: int
    ) -> int | None:
        """Read one attribute; the position after it, None where that is not to be found."""
        text = self.text
        found = _ATTRIBUTE.match(text, position)
        if found is None:
            return self._odd_attribute(tag, attributes, position, start)
        name = _tag(found[1])
        value = found[2] if found[2] is not None else found[3]
        begin = found.start(2) if found[2] is not None else found.start(3)
        if position and text[position - 1] not in " \t\r\n":
            self._tell("IR104", f"no blank before attribute {name} of <{tag}>", position)
        if name in attributes:
            self._tell(
                "IR105",
                f"attribute {name} of <{tag}> is given twice, "
                f"{shown(attributes[name])} and {shown(_utf8(value))}",
                position,
                "remove one of them: OpenVINO takes the first",
                clear=True,
            )
        else:
            attributes[name] = self._decoded(value, begin)
        return found.end()

    def _odd_attribute(
        self, tag: str, attributes: dict[str, str], position: int, start: int
    ) -> int | None:
        text = self.text
        self.odd = True
        found = _QUOTED.match(text, position)
        if found is None:
            if position > self.last_bracket:
                whose = f"<{tag}>{_of(attributes)}{self._inside()}"
                self._tell("IR102", f"the file ends inside the tag {whose}", start)
                return len(text)
            near = text[position : position + 20].split("\n")[0]
            if re.match(_NAME, near) and "=" not in near.partition(" ")[0]:
                message = f"an attribute without a value in <{tag}>: {shown(_utf8(near))}"
            else:
                message = f"no attribute in <{tag}>: {shown(_utf8(near))}"
            self._tell("IR104", message, position, 'attributes are written name="value"')
            # One word is skipped; the other attributes may be right.
            skipped = re.compile(r"""[^\s<>"'/]+(?:=[^\s<>"'/]+)?""").match(text, position)
            if skipped:
                return skipped.end()
            if text[position] == "/" or text[position] in "\"'":
                return position + 1
            return None
        name, quote = _tag(found[1]), found[2]
        end = text.find(quote, found.end())
        following = self._next_tag(found.end())
        if end < 0 and following == len(text) and text.find(">", found.end()) < 0:
            self._tell(
                "IR102",
                f"the file ends inside attribute {name} of <{tag}>{_of(attributes)}"
                f"{self._inside()}",
                start,
            )
            return len(text)
        if end < 0 or following < end:
            self._tell("IR104", f"attribute {name} of <{tag}> has no closing {quote}", position)
            return None
        value = text[found.end() : end]
        self._tell(
            "IR104",
            f"a bare < in attribute {name} of <{tag}>",
            found.end() + max(value.find("<"), 0),
            "write &lt;",
            clear=True,
        )
        attributes.setdefault(name, self._decoded(value, found.end()))
        return end + 1

    def _next_tag(self, position: int) -> int:
        """Where the next tag is that begins on a later line; the end of the text without."""
        if self.next_tag < position:  # positions only grow: no text is searched twice
            found = _NEXT_TAG.search(self.text, position)
            self.next_tag = len(self.text) if found is None else found.start()
        return self.next_tag

    def _enter(self, name: str, attributes: dict[str, str], start: int, *, closed: bool) -> None:
        tag = _tag(name)
        self._settle()
        while self.stack and not self.deeper:
            outer = str(self.stack[-1].tag)
            if outer not in _LEAVES and (outer, tag) not in _NEVER_IN:
                break
            self._forgotten(f"<{name}>", start)
            self.stack.pop()
        if self.deeper or len(self.stack) >= DEEPEST:
            if not self.told_depth:
                self.told_depth = True
                self._tell("IR114", f"elements are nested more than {DEEPEST} deep", start)
            if not closed:
                self.deeper.append(name)
            return
        if len(attributes) > MOST_ATTRIBUTES:
            # Made one by one, each is compared with all before it.
            attributes = dict(islice(attributes.items(), MOST_ATTRIBUTES))
            self.odd = True
        try:
            if self.stack:
                element = etree.SubElement(self.stack[-1], tag, attributes)
            elif self.scan.root is None:
                element = self.scan.root = etree.Element(tag, attributes)
            else:
                self._tell(
                    "IR109", f"a second root element <{name}>", start, "a file has one <net>"
                )
                element = etree.Element(tag, attributes)
        except ValueError:
            self._tell("IR101", f"<{shown(name)[1:-1]}> or an attribute has no legal name", start)
            element = etree.SubElement(self.stack[-1], "_") if self.stack else etree.Element("_")
        self.scan.offsets[element] = start
        if self.odd:
            self.scan.odd.add(element)
        if not closed:
            self.stack.append(element)

    # The end.

    def _finish(self) -> None:
        self._settle()
        if not self.stack:
            return
        if any(breach.code in ("IR102", "IR103") for breach in self.scan.breaches[-1:]):
            return
        names = [str(element.tag) for element in self.stack]
        inner = self.stack[-1]
        opened = self._line(self.scan.offsets[inner])
        self._tell(
            "IR102",
            f"the file ends after {len(self.text)} bytes inside <{names[-1]}> of line "
            f"{opened}{self._inside()}; {len(names)} elements are open",
            len(self.text),
            "the file was cut, or a closing tag is missing: write it again from its source",
        )

    def _inside(self) -> str:
        layer = next((x for x in reversed(self.stack) if x.tag == "layer"), None)
        if layer is None:
            return ""
        return f", inside layer {layer.get('id')} {shown(layer.get('name', ''))}"

    def _line(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1


def _blank(text: str, position: int) -> int:
    found = _BLANK.match(text, position)
    return found.end() if found else position


def _of(attributes: dict[str, str]) -> str:
    name = attributes.get("name")
    return "" if name is None else f" named {shown(name)}"


def _utf8(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("latin-1", "replace").decode("utf-8", "replace")


def _tag(name: str) -> str:
    return _utf8(name).replace(":", ".") if ":" in name else _utf8(name)


def _alike(one: str, two: str) -> bool:
    """Whether two tags differ by a slip of the pen."""
    return abs(len(one) - len(two)) <= 1 and (one[:2] == two[:2] or one[-2:] == two[-2:])
