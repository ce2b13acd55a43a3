"""The command line on a terminal of 80 columns, in colour and without, and when it is stopped."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.cli import VERBS, main
from vinoir.ir.cli import output as printed

pty = pytest.importorskip("pty")

SAMPLES = Path(__file__).parents[1] / "samples"
DIGITS = str(SAMPLES / "digits.xml")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
#: Names as exporters make them: longer than a line is wide.
LONG = "model/encoder/layers.{}/attention/self/query_key_value/projection/BatchMatMulWithBias_{}"
VINOIR = [sys.executable, "-m", "vinoir.ir"]


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return kept | {"PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm"} | more


def in_process_of_its_own(program: list[str], columns: int = 80, **more: str) -> str:
    """What a program prints where both of its outputs are one real terminal."""
    import fcntl
    import struct
    import termios

    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        program, stdin=inner, stdout=inner, stderr=inner, env=environment(**more)
    )
    os.close(inner)
    text = b""
    while True:
        try:
            part = os.read(outer, 65536)
        except OSError:  # the last who had it open is gone
            break
        if not part:
            break
        text += part
    os.close(outer)
    process.wait()
    return text.decode("utf-8").replace("\r\n", "\n")


Said = Callable[..., str]


@pytest.fixture
def piped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Said:
    """What a verb prints into a pipe."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def said(*words: str) -> str:
        with pytest.raises(SystemExit):
            main(list(words))
        return capsys.readouterr().out

    return said


@pytest.fixture
def on_terminal(piped: Said, monkeypatch: pytest.MonkeyPatch) -> Said:
    """What a verb prints on a terminal of 80 columns."""

    def said(*words: str, **more: str) -> str:
        with monkeypatch.context() as patch:
            for name, value in {"COLUMNS": "80", "TERM": "xterm", **more}.items():
                patch.setenv(name, value)
            for stream in (sys.stdout, sys.stderr):
                patch.setattr(stream, "isatty", lambda: True)
            return piped(*words)

    return said


@pytest.fixture(scope="module")
def long_names(tmp_path_factory: pytest.TempPathFactory) -> str:
    net = ir.Builder("long")
    x = net.parameter("input_" + "x" * 70, "f32", (1, 3, 224, 224))
    for number in range(3):
        x = net.add("ReLU", "opset1", [x], name=LONG.format(number, number))
    pair = net.add("Split", "opset1", [x, net.constant(np.int64(2))], name="pair", num_splits=2)
    sums = net.add("Concat", "opset1", [pair[1], pair[0]], name=LONG.format(9, 9), axis=2)
    net.result(sums, name="result_" + "y" * 80)
    path = tmp_path_factory.mktemp("long") / "long.xml"
    ir.write(net.model(), path)
    return str(path)


@pytest.mark.parametrize(
    "words",
    [("show",), ("show", "--layers"), ("show", "--layers", "--sort", "macs"), ("show", "--tree"),
     ("infer",), ("run", "--trace"), ("run", "--top", "2"), ("weights", "list"),
     ("compare", "--against", "f16"), ("show", "--layer", LONG.format(1, 1))],
    ids=" ".join,
)  # fmt: skip
def test_at_80_columns_nothing_is_cut(
    words: tuple[str, ...], long_names: str, on_terminal: Said, piped: Said
) -> None:
    verb = words[:2] if words[0] == "weights" else words[:1]
    line = [*verb, long_names, *words[len(verb) :]]
    narrow = on_terminal(*line, "--color", "never")
    wide = piped(*line)
    # Times differ from run to run.
    number = re.compile(r"^[\d.,]+(?:%|e-?\d+)?$")
    wanted = {word.rstrip(",") for word in wide.split() if not number.match(word)}
    # A column that leaves the table names itself where it has something to say.
    shown = {word.rstrip(",") for word in narrow.split()} | {"declared"}
    assert wanted <= shown
    assert "…" not in narrow
    for text in narrow.split("\n"):
        # Only a name that no line could hold makes one longer.
        assert len(text) <= 80 or max(map(len, text.split())) > 60, text


def test_a_real_terminal_is_asked_for_its_width(long_names: str) -> None:
    program = [*VINOIR, "show", long_names, "--layers"]
    narrow = in_process_of_its_own(program)
    assert ESCAPES.search(narrow)
    assert max(map(len, ESCAPES.sub("", narrow).split("\n"))) <= 110
    wide = in_process_of_its_own(program, columns=400)
    assert LONG.format(1, 1) in wide
    assert len(wide.splitlines()) < len(narrow.splitlines())


@pytest.mark.parametrize("verb", VERBS)
def test_every_help_fits_80_columns(verb: str, on_terminal: Said) -> None:
    for line in on_terminal(verb, "--help").partition("Examples:")[0].splitlines():
        assert len(line) <= 80, line


@pytest.mark.parametrize(
    ("columns", "rows", "shown"),
    [
        (None, [["a" * 90, "1"]], ["  name" + " " * 88 + "n", "  " + "a" * 90 + "  1"]),
        (40, [["a" * 20, "1"]], ["  name                  n", "  " + "a" * 20 + "  1"]),
        (40, [["one two three four five six seven eight", "1"]],
         ["  name" + " " * 33 + "n", "  one two three four five six seven    1", "  eight"]),
        (40, [["日本語" * 3, "1"]], ["  name                n", "  日本語日本語日本語  1"]),
    ],
)  # fmt: skip
def test_tables(
    columns: int | None,
    rows: list[list[str]],
    shown: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(printed, "screen_width", lambda: columns)
    printed.print_table("", ["name", "n"], rows, right=(1,))
    assert capsys.readouterr().out.rstrip("\n").split("\n") == shown


def test_what_does_not_fit_stands_below(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(printed, "screen_width", lambda: 40)
    rows = [["1", "a" * 38, "12"], ["2", "b", "34"]]
    printed.print_table("title", ["id", "name", "n"], rows, right=(2,))
    assert capsys.readouterr().out.splitlines() == [
        "title", "  id   n", "  1   12", "      name  " + "a" * 38, "  2   34", "      name  b",
        "",
    ]  # fmt: skip


# Colour.


@pytest.mark.parametrize(
    ("words", "more", "colour"),
    [
        (["show", DIGITS], {}, True),
        (["show", DIGITS], {"NO_COLOR": "1"}, False),
        (["show", DIGITS], {"TERM": "dumb"}, False),
        (["--color", "never", "show", DIGITS], {}, False),
        (["show", DIGITS, "--color", "never"], {}, False),
        (["show", "--color=never", DIGITS], {"FORCE_COLOR": "1"}, False),
        (["show", DIGITS, "--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never", "show", DIGITS, "--color", "auto"], {}, True),
        (["weights", "--color", "never", "list", DIGITS], {}, False),
        (["weights", "list", DIGITS, "--color", "never"], {}, False),
        (["check", "missing.xml"], {}, True),
        (["check", "missing.xml"], {"NO_COLOR": "1"}, False),
    ],
)
def test_colour_on_a_terminal(
    words: list[str], more: dict[str, str], colour: bool, on_terminal: Said
) -> None:
    assert bool(ESCAPES.search(on_terminal(*words, **more))) == colour


@pytest.mark.parametrize("words", [["show", DIGITS], ["check", "missing.xml"], ["infer", DIGITS]])
def test_colour_in_a_pipe(words: list[str], piped: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = piped(*words)
    assert not ESCAPES.search(plain)
    coloured = piped(*words, "--color", "always")
    assert ESCAPES.search(coloured)
    assert ESCAPES.sub("", coloured) == plain
    # What one command line settles does not outlast it.
    assert piped(*words) == plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert piped(*words) == coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert piped(*words) == plain


# Bars, and Ctrl-C.

SLOW = """
import time
from vinoir.layers import pooling
run = pooling.MaxPoolV14.run
def slow(self, x):
    time.sleep(1.2)
    return run(self, x)
pooling.MaxPoolV14.run = slow
from vinoir.ir.cli import main
main({words!r})
"""


def test_bars_are_for_terminals_alone() -> None:
    program = [sys.executable, "-c", SLOW.format(words=["run", DIGITS])]
    assert "ReLU" in ESCAPES.sub("", in_process_of_its_own(program))
    done = subprocess.run(program, capture_output=True, text=True, env=environment(), check=True)
    assert done.stderr == ""
    assert "MaxPool" not in done.stdout


#: Programs that send themselves Ctrl-C where a file is being written.
STOPPED = """
import os, signal, sys
import numpy as np
from vinoir.ir.storage import atomic
import zipfile
# Whoever runs the tests behind a terminal may have set it to be ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
rename, write = os.replace, np.lib.format.write_array
def stop(*args, **words):
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(10**7):
        pass
if {at!r} == "arrays":
    np.lib.format.write_array = stop
elif {at!r} == "text":
    from vinoir.ir.storage import one_file
    one_file._name = stop
else:
    atomic.os.fsync = stop
from vinoir.ir.cli import main
main({words!r})
"""


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("arrays", ["run", DIGITS, "--save", "out.npz"]),
        ("arrays", ["weights", "export", DIGITS, "-o", "out.npz"]),
        ("text", ["draw", DIGITS, "-o", "out.svg"]),
        ("pair", ["copy", DIGITS, "out.xml"]),
        ("pair", ["infer", DIGITS, "-o", "out.xml"]),
        ("pair", ["compress", DIGITS, "-o", "out.xml"]),
    ],
)
def test_ctrl_c_leaves_no_half_file(at: str, words: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED.format(at=at, words=words)],
        cwd=tmp_path, capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert done.stderr.strip().endswith("stopped")
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_from_outside(tmp_path: Path) -> None:
    program = SLOW.format(words=["run", DIGITS, "--save", "out.npz"])
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    if process.returncode != 0:  # it may have been done before
        assert process.returncode in (130, -signal.SIGINT), err
        assert list(tmp_path.iterdir()) == []


# Completion.


def completed(
    words: str, at: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    more = {"_VINOIR_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    for name, value in more.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        main([])
    out, err = capsys.readouterr()
    assert err == ""
    return [line.partition(",")[2] for line in out.splitlines()]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("vinoir co", ["compare", "copy", "compress", "convert", "completion"]),
        ("vinoir show --la", ["--layer", "--layers"]),
        (f"vinoir show {DIGITS} --layer po", ["pool1", "pool2"]),
        (f"vinoir draw {DIGITS} --around lo", ["look1", "look2"]),
        (f"vinoir extract {DIGITS} --to reading", ["reading"]),
        ("vinoir run --color a", ["auto", "always"]),
        ("vinoir ops maxp", ["MaxPool"]),
        ("vinoir weights e", ["export"]),
        (f"vinoir show {DIGITS} --layer=po", ["pool1", "pool2"]),
        (f"vinoir run {DIGITS} --input im", ["image="]),
        (f"vinoir run {DIGITS} -i image=see", ["see"]),
        (f"vinoir infer {DIGITS} -i i", ["image="]),
        (f"vinoir infer {DIGITS} -i image=1", [""]),
        (f"vinoir compare {DIGITS} -i i", ["image="]),
        (f"vinoir edit {DIGITS} --rename look", ["look1=", "look2="]),
        (f"vinoir edit {DIGITS} --rename look1=", [""]),
        (f"vinoir edit {DIGITS} --set po", ["pool1.", "pool2."]),
        (f"vinoir edit {DIGITS} --set pool1.ro", ["pool1.rounding_type="]),
        (f"vinoir edit {DIGITS} --constant f", ["filters1=", "filters2=", "flat="]),
        (f"vinoir edit {DIGITS} --add-output sc", ["scores"]),
        (f"vinoir edit {DIGITS} --remove-output d", ["digit"]),
        (f"vinoir edit {DIGITS} --add-input fea", ["features"]),
        (f"vinoir extract {DIGITS} --body po", ["pool1", "pool2"]),
        (f"vinoir merge {DIGITS} --map d", ["digit="]),
        (f"vinoir merge {DIGITS} --share i", ["image"]),
        ("vinoir explain ir31", ["IR311", "IR312", "IR313", "IR314", "IR315", "IR316"]),
        ("vinoir schema output si", ["simplify"]),
    ],
)
def test_verbs_options_and_layers_are_completed(
    words: str,
    found: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert completed(words, len(words.split()) - 1, capsys, monkeypatch) == found


TYPED = {
    "--layer __module.conv1/aten::s": ["--layer", "__module.conv1/aten::softmax"],
    "--layer __module.conv1/": ["--layer", "__module.conv1/aten::softmax"],
    "--layer=__module.conv1/aten:": ["--layer=__module.conv1/aten::softmax"],
    "--input x\t1,3": ["--input", "x=1,3"],
    "--layer r": ["--layer", "r e l u"],
    "--layer r\\ e": ["--layer", "r e l u"],
    "--layer 'r e": ["--layer", "r e l u"],
    "--layer '__module.conv1/aten::": ["--layer", "__module.conv1/aten::softmax"],
    "--layer $": ["--layer", "$(a=b)@c"],
    "--layer \\$\\(a=b": ["--layer", "$(a=b)@c"],
}


@pytest.mark.parametrize("typed", TYPED)
def test_bash_writes_names_whatever_is_in_them(typed: str, tmp_path: Path) -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,2")
    for kind, name in (("Sigmoid", "r e l u"), ("Tanh", "$(a=b)@c")):
        x = net.add(kind, "opset1", [x], name=name)
    net.result(net.add("SoftMax", "opset8", [x], name="__module.conv1/aten::softmax"), name="y")
    ir.write(net.model(), tmp_path / "m.xml")
    run = f'{sys.executable} -m vinoir.ir "$@"'
    (tmp_path / "vinoir").write_text(
        f'#!/bin/bash\n[ "$_VINOIR_COMPLETE" ] && exec {run}\n'
        'printf "%s\\n" "$@" > taken.part; mv taken.part taken\n'
    )
    (tmp_path / "vinoir").chmod(0o755)
    done = subprocess.run([*VINOIR, "completion", "bash"], capture_output=True, check=True,
                          env=environment())  # fmt: skip
    (tmp_path / "script").write_bytes(done.stdout)
    pid, line = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        words = ["bash", "--norc", "--noprofile", "-i"]
        os.execvpe("bash", words, environment(PATH=path, TERM="dumb"))
    try:
        os.write(line, f". ./script\nvinoir show m.xml {typed}\t\n".encode())
        until = time.monotonic() + 30
        while not (tmp_path / "taken").exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert (tmp_path / "taken").read_text().splitlines() == ["show", "m.xml", *TYPED[typed]]
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(line)


NAMED = """<net name="m" version="11"><layers>
<layer version="opset1" type="Parameter" name="in &amp; &lt;put" id="0"><data shape="1"/>
<output><port id="0" precision="FP32" names="a\\,b,in &gt; c"><dim>1</dim></port></output></layer>
<layer id="1" name="bad\nname" type="Parameter" version="opset1"></layer>
<layer id="2" name="in > out" type="ReLU" version="opset1"></layer>
<layer id="3" type="Parameter" name="in
"""


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("run m.xml --input i", ["in & <put=", "in > c="]),
        ("run m.xml --input a", ["a,b="]),
        ("edit m.xml --add-output in", ["in & <put", "in > c", "in > out"]),
        ("run no.xml --input i", [""]),
    ],
)
def test_names_are_found_however_the_text_says_them(
    words: str,
    found: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.xml").write_text(NAMED)
    assert completed(f"vinoir {words}", len(words.split()), capsys, monkeypatch) == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(
    shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit):
        main(["completion", shell])
    script = capsys.readouterr().out
    assert f"_VINOIR_COMPLETE={shell}_complete" in script
    if shell == "bash":
        (tmp_path / "script").write_text(script)
        subprocess.run(["bash", "-n", tmp_path / "script"], check=True)
