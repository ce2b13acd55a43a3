"""What OpenVINO's XML parser reads and XML forbids, repaired and reported.

OpenVINO reads with pugixml, which takes much that is not XML, and writes some of it too
(control characters in names). The repaired document means what OpenVINO understands; its lines
are those of the original.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .encoding import taken_as
from .strictness import keeps_to_xml

#: More repairs than these are made, but not reported one by one.
_REPORTED = 1000

_REPLACEMENT = "\ufffd"

_LESS, _AND = 'raw "<" in an attribute', 'raw "&", or an entity that is not defined'
_BLANKS = "blanks before the XML declaration"

_TOKEN = re.compile(
    r"<!--(?P<comment>.*?)-->|<!\[CDATA\[(?P<cdata>.*?)\]\]>|<\?.*?\?>"
    r"|<(?P<end>/?)(?P<name>[^\s<>/=\"'?!&]+)"
    r"(?P<rest>(?:[^<>\"'=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')?)*+)>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"(\s++)([^\s=<>\"'/]++)(\s*+=\s*+)(\"[^\"]*+\"|'[^']*+')")
_LOOSE = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,8}|#x[0-9a-fA-F]{1,8});)")
_NUMERIC = re.compile(r"&#(?:x([0-9a-fA-F]{1,8})|([0-9]{1,8}));")
_FORBIDDEN = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
#: Names whose prefix needs no declaration.
_KNOWN = re.compile(r"xml:[^\W\d][^:]*")
_DECLARATION = re.compile(r"(\s*)(<\?xml\s[^>]*\?>)")


class Repair(NamedTuple):
    """One thing that was mended, and where."""

    line: int
    column: int
    message: str

    @property
    def settles(self) -> str | None:
        """The code of the finding that this settles where it loses nothing, as an escape does."""
        return {_LESS: "IR104", _AND: "IR106", _BLANKS: "IR108"}.get(self.message)


class _Open(NamedTuple):
    """An element that has begun: its name, and what is written."""

    name: str
    written: str


def repair(source: bytes) -> tuple[bytes, list[Repair]]:
    """The document as XML, and what had to be done to it; the same bytes where nothing had.

    Prefixes stay as they are, or none does: to OpenVINO, they are a part of the name.
    """
    mended, repairs, prefixed = _mended(source, prefixes=True)
    if prefixed and not keeps_to_xml(mended):
        mended, repairs, _ = _mended(source, prefixes=False)
    return mended, repairs


def _mended(source: bytes, prefixes: bool) -> tuple[bytes, list[Repair], bool]:
    """The document, what had to be done to it, and whether names in it have prefixes."""
    mender = _Mender(source, prefixes)
    mended = mender.mend()
    return mended.encode() if mender.repairs else source, mender.repairs, mender.prefixed


class _Mender:
    """Goes through a document once."""

    def __init__(self, source: bytes, prefixes: bool) -> None:
        self.repairs: list[Repair] = []
        #: Whether there are names with prefixes, and whether they stay.
        self.prefixed, self._prefixes = False, prefixes
        self.text = ""
        self._place, self._line, self._start = 0, 1, 0
        self._open: list[_Open] = []
        self.text = self.decode(source)

    def report(self, position: int, message: str) -> None:
        """Note a repair at a position of the text."""
        if len(self.repairs) >= _REPORTED:
            return
        if position < self._place:
            self._line -= self.text.count("\n", position, self._place)
            self._start = self.text.rfind("\n", 0, position) + 1
        else:
            self._line += self.text.count("\n", self._place, position)
            newline = self.text.rfind("\n", self._place, position)
            if newline >= 0:
                self._start = newline + 1
        self._place = position
        self.repairs.append(Repair(self._line, position - self._start + 1, message))

    def decode(self, source: bytes) -> str:
        """The document as text; bytes that are none in its encoding are replaced."""
        encoding, wrong = taken_as(source)
        if wrong is not None:
            self.report(0, wrong)
        try:
            return source.decode(encoding)
        except UnicodeDecodeError:
            self.text = source.decode(encoding, "replace")
        strict = "utf-8" if encoding.startswith("utf-8") else encoding
        view = memoryview(source)
        # Of the text: how much of it is what the bytes before the offset stand for.
        offset = 3 if encoding == "utf-8-sig" else 0
        read = 0
        while strict == "utf-8" and len(self.repairs) < _REPORTED:
            try:
                str(view[offset:], strict)
                break
            except UnicodeDecodeError as error:
                at = offset + error.start
                read += len(str(view[offset:at], strict))
                self.report(read, f"byte 0x{source[at]:02x} is not UTF-8")
                offset += error.end
                read += 1
        if not self.repairs:
            self.report(0, f"bytes that are not {encoding}")
        return self.text

    def mend(self) -> str:
        """The repaired text."""
        text = self.text
        stripped = text.rstrip("\0")
        if len(stripped) < len(text):
            self.report(len(stripped), f"{len(text) - len(stripped)} NUL after the end")
            self.text = text = stripped
        out: list[str] = []
        position = 0
        declared = _DECLARATION.match(text)
        if declared is not None:
            if declared[1]:
                self.report(declared.start(2), _BLANKS)
            # The text is handed on as UTF-8, the encoding may have been another.
            out.append(f'<?xml version="1.0"?>{declared[1]}')
            position = declared.end()
        rooted = False
        while position < len(text):
            start = text.find("<", position)
            start = len(text) if start < 0 else start
            if rooted and not self._open:
                rest = text[position:]
                if rest.strip() and not _only_comments(rest):
                    first = position + len(rest) - len(rest.lstrip())
                    self.report(first, "text after the root element")
                    rest = "\n"
                out.append(rest)
                break
            out.append(self.words(text[position:start], position))
            if start == len(text):
                break
            token = _TOKEN.match(text, start)
            if token is None:
                out.append(text[start:])  # the parser will say what is wrong
                break
            position = token.end()
            if token["name"] is None:
                out.append(self.special(token))
                continue
            if token["end"]:
                name, written = self._open.pop() if self._open else ("", "")
                out.append(token[0] if token["name"] != name else f"</{written}{token['rest']}>")
                continue
            out.append(self.tag(token))
            rooted = True
        return "".join(out)

    def special(self, token: re.Match[str]) -> str:
        """A comment, a section of plain text or an instruction."""
        whole = self.characters(token[0], token.start())
        comment = token["comment"]
        if comment is not None and ("--" in comment or comment.endswith("-")):
            self.report(token.start(), '"--" in a comment')
            return "<!--" + re.sub("-(?=-|$)", "- ", self.characters(comment, 0, False)) + "-->"
        return whole

    def characters(self, text: str, position: int, report: bool = True) -> str:
        """Text without the characters that XML forbids."""
        found = _FORBIDDEN.search(text)
        if found is None:
            return text
        if report:
            code = ord(found[0])
            self.report(position + found.start(), f"character U+{code:04X}, which XML forbids")
        return _FORBIDDEN.sub(_REPLACEMENT, text)

    def words(self, text: str, position: int, attribute: bool = False) -> str:
        """Text or an attribute's value, with what has a meaning in XML escaped."""
        if attribute and "<" in text:
            self.report(position + text.index("<"), _LESS)
            text = text.replace("<", "&lt;")
        if not attribute and "]]>" in text:
            self.report(position + text.index("]]>"), '"]]>" in text')
            text = text.replace("]]>", "]]&gt;")
        if "&" in text:
            found = _LOOSE.search(text)
            if found is not None:
                self.report(position + found.start(), _AND)
                text = _LOOSE.sub("&amp;", text)

            def number(found: re.Match[str]) -> str:
                code = int(found[1], 16) if found[1] else int(found[2])
                if code > 0x10FFFF or code == 0 or _FORBIDDEN.match(chr(code)):
                    self.report(position, f"character {found[0]}, which XML forbids")
                    return _REPLACEMENT
                return found[0]

            text = _NUMERIC.sub(number, text)
        return self.characters(text, position)

    def tag(self, token: re.Match[str]) -> str:
        """A start tag: each attribute once, its value as XML wants it."""
        rest, begin = token["rest"], token.start("rest")
        tag = self.name(token["name"], token.start("name"))
        seen: set[str] = set()
        out: list[str] = []
        end = 0
        # One by one: a search would look at a long name again from each of its letters.
        while found := _ATTRIBUTE.match(rest, end):
            place, name, value = begin + found.start(2), found[2], found[4]
            end = found.end()
            declares = name == "xmlns" or (not self._prefixes and name.startswith("xmlns:"))
            name = name if declares else self.name(name, place)
            if name in seen:
                self.report(place, f'attribute "{name}" twice, the first counts')
                continue
            seen.add(name)
            if declares:
                self.report(place, "a namespace, which an IR has not")
                continue
            inner = self.words(value[1:-1], begin + found.start(4) + 1, attribute=True)
            out.append(f"{found[1]}{name}{found[3]}{value[0]}{inner}{value[0]}")
        if not rest.endswith("/"):
            self._open.append(_Open(token["name"], tag))
        if rest[end:].strip().strip("/"):
            return token[0]  # the parser will say what is wrong
        return f"<{tag}{''.join(out)}{rest[end:]}>"

    def name(self, name: str, position: int) -> str:
        """A name, with a dot for each colon where prefixes do not stay, or "_" at its start."""
        prefix, colon, _ = name.partition(":")
        if not colon:
            return name
        self.prefixed = True
        if self._prefixes or _KNOWN.fullmatch(name):
            return name
        self.report(position, f'the prefix "{prefix}", which is a part of the name to OpenVINO')
        return "_" * (not prefix) + name[not prefix :].replace(":", ".")


_ASIDE = re.compile(r"\s++|<!--.*?-->|<\?.*?\?>", re.DOTALL)


def _only_comments(text: str) -> bool:
    position = 0
    while found := _ASIDE.match(text, position):
        position = found.end()
    return position == len(text)
