"""``vinoir convert``: an old model in today's form, or one of today in an older one."""

from __future__ import annotations

import click

from ...schemas import UnsupportedError, UsageError
from ...schemas.printing import counted
from ..document import Model
from ..surgery import Surgery, convert
from .older import print_remarks, refusal
from .operate import Destination, deliver, operation_options, print_refusals
from .options import Source, Target, format_option, model_options, verb
from .output import note, print_json


@verb(
    "convert",
    "convert old.xml -o new.xml",
    "convert model.xml --target 2022.3 -o older.xml",
    "convert model.xml --opset 8 --dry-run",
)
@model_options
@click.option("--target", metavar="RELEASE", help="The OpenVINO release that is to read it.")
@click.option("--opset", type=int, help="The latest opset that layers may name.")
@click.option("--ir-version", type=int, help="10 or 11.")
@click.option(
    "--keep-preprocess",
    is_flag=True,
    help="Of IR v2 to v7: leave mean values to the caller, and say them in rt_info.",
)
@operation_options
@format_option()
def convert_command(
    source: Source,
    target: str | None,
    opset: int | None,
    ir_version: int | None,
    keep_preprocess: bool,
    destination: Destination,
    format_: str,
) -> None:
    """Bring MODEL into another form.

    IR of version 2 to 7 is upgraded to version 11; what is not one to one is listed. With
    --target, --opset or --ir-version newer operations are said by older ones. Exit code 4 where
    a layer cannot be converted (all are listed, nothing is written), 1 where the sizes of an
    old model are not those that it declares.
    """
    place = destination.of(source)
    found = source.read(keep_preprocess=keep_preprocess)
    if found.origin is not None:
        # An old model is written anew, so that its weights must be there.
        found = source.read(need_weights=True, keep_preprocess=keep_preprocess)
        remarks = [] if found.origin is None else found.origin.remarks
        missing = [remark for remark in remarks if remark.kind == "missing"]
        if missing:
            raise refusal(missing)
    elif keep_preprocess:
        raise UsageError(
            f"{source.path} is IR version {found.version}; --keep-preprocess is for v2 to v7"
        )
    if found.origin is not None and (target, opset, ir_version) == (None, None, None):
        upgraded(found, place, format_)
    else:
        done = convert(found, target=target, opset=opset, ir_version=ir_version, partial=True)
        if done.report.refusals:
            refuse(done.report, format_)
        deliver(done, place, format_)
    if found.origin is not None and any(one.kind == "unlike" for one in found.origin.remarks):
        raise SystemExit(1)


def upgraded(model: Model, place: Target, format_: str) -> None:
    """Write a model that was upgraded when it was read, and tell what was decided."""
    origin = model.origin
    assert origin is not None
    place.write(model)
    if format_ == "json":
        # The same document as of any conversion; an upgrade lists what it decided as remarks.
        report = Surgery("convert", layers=(len(model), len(model)))
        rows = {**report.to_json(), "written": place.path, "origin": origin.to_json()}
        print_json("convert", rows)
    elif origin.remarks:
        print_remarks(origin)
    what = f"{counted(len(model), 'layer')}, from IR version {origin.version}"
    wrote = "nothing written" if place.path is None else f"wrote {place.path}"
    note(f"{wrote}: {what}")


def refuse(report: Surgery, format_: str) -> None:
    """List what cannot be converted, and leave."""
    if format_ == "json":
        print_json("convert", {**report.to_json(), "written": None})
    else:
        print_refusals(report)
    note(f"{counted(len(report.refusals), 'layer')} cannot be converted; nothing written")
    raise SystemExit(UnsupportedError.exit_code)
