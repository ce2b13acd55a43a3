"""Documents made to take long: the work grows with their length and not with its square."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest
from vinoir import ir
from vinoir.ir.text.repairs import repair
from vinoir.schemas import IRError, UnreadableError

HEAD = '<?xml version="1.0"?><net name="m" version="11"><layers>'
TAIL = "</layers><edges/></net>"

#: By name: a document of about so many characters. Each took minutes, or would.
DOCUMENTS: dict[str, Callable[[int], str]] = {
    "attributes without quotes": lambda n: f"{HEAD}<layer {'a=1 ' * (n // 4)}",
    "attributes of nothing but quotes": lambda n: HEAD + "<layer " + '"" ' * (n // 3) + "/>",
    "attributes that are not closed": lambda n: HEAD + "<layer " + 'a="< ' * (n // 5),
    "one attribute many times": lambda n: HEAD + "<layer " + 'a="1" ' * (n // 6) + "/>" + TAIL,
    "a name without a value": lambda n: f"{HEAD}<layer {'a' * n}/>{TAIL}",
    "blanks in a tag": lambda n: f"{HEAD}<layer {' ' * n}a b/>{TAIL}",
    "lines in a value that does not end": lambda n: HEAD + '<layer a="' + "\n" * n + "x",
    "text between comments": lambda n: f"{HEAD}{'a<!---->' * (n // 8)}&bad;{TAIL}",
    "text between elements": lambda n: f"{HEAD}{'a<x/>' * (n // 5)}&bad;{TAIL}",
    "comments that do not end": lambda n: f"{HEAD}{TAIL}{'<!--' * (n // 4)}",
    "elements within each other": lambda n: HEAD + "<a>" * (n // 3),
    "elements closed crosswise": lambda n: HEAD + "<a><b></a></b>" * (n // 14),
    "ends of nothing": lambda n: HEAD + "</a>" * (n // 4),
    "values with a raw <": lambda n: f"""{HEAD}</layers><a>{'<a a="<"/>' * (n // 10)}</a></net>""",
    "values with a raw &": lambda n: f"""{HEAD}</layers><a>{'<a a="&"/>' * (n // 10)}</a></net>""",
    "bytes that are no text": lambda n: f"{HEAD}<!--{chr(0xDCFF) * n}-->{TAIL}",
    "references to no character": lambda n: f'{HEAD}<layer id="{"&#1;" * (n // 4)}"/>{TAIL}',
    "quotes in a DOCTYPE": lambda n: "<!DOCTYPE net [" + '"' * n,
    "punycode": lambda n: '<?xml version="1.0" encoding="punycode"?>' + "a" * n,
    "idna": lambda n: '<?xml version="1.0" encoding="idna"?>' + "a." * (n // 2),
}

#: What took the square of its length takes 25 times as long for five times as much.
SIZE, SECONDS = 1_000_000, 15


@pytest.mark.parametrize("make", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_long_document_is_judged_in_seconds(make: Callable[[int], str]) -> None:
    source = make(SIZE).encode("utf-8", "surrogateescape")
    began = time.process_time()
    ir.check(source)
    repair(source)
    for lenient in (False, True):
        with contextlib.suppress(IRError):
            ir.loads(source, lenient=lenient)
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("encoding", ["punycode", "idna", "utf-7", "raw_unicode_escape", "zip"])
def test_check_reads_the_encodings_that_the_reader_reads(encoding: str) -> None:
    source = f'<?xml version="1.0" encoding="{encoding}"?><net version="11"/>'.encode()
    with pytest.raises(UnreadableError, match="is not read"):
        ir.loads(source)
    # OpenVINO knows no such word either, and takes the document for UTF-8.
    assert [row.message for row in repair(source)[1]] == [f'encoding "{encoding}" is not read']
    assert repair(source)[0] == b'<?xml version="1.0"?><net version="11"/>'
    assert ir.check(source).findings[0].code == "IR112"


def test_what_pieces_of_text_mean_is_put_together() -> None:
    from vinoir.ir.text.scanner import Scanner

    root = Scanner(b"<net>a<!-- -->b<x/>c<!-- -->d<y>e</y>f</net>").run().root
    assert root is not None
    assert (root.text, root[0].tail, root[1].text, root[1].tail) == ("ab", "cd", "e", "f")


def test_repairs_tell_the_place_of_each_bad_byte() -> None:
    _, repairs = repair(b'<net name="a\xff\nb\xe4\xf6" version="11"/>')
    assert [(row.line, row.column) for row in repairs] == [(1, 13), (2, 2), (2, 3)]
