"""Ask for shapes: what follows from an input whose sizes are only partly known."""

from __future__ import annotations

from pathlib import Path

from vinoir import ir


def main() -> None:
    model = ir.read(Path(__file__).parent / "digits.xml")

    # A name stands for a size that nobody knows yet; it goes through the network by its name.
    tensors = ir.infer(model, {"image": "N,1,16,16"})
    for layer, _, tensor in tensors.ports():
        if layer.type != "Const":
            print(f"{layer.name:10} {layer.type:12} {tensor}")

    # A shape that does not fit is refused where it stops fitting, with what would help.
    try:
        ir.infer(model, {"image": "1,1,20,20"})
    except ir.IRError as error:
        print(f"\n{error}")


if __name__ == "__main__":
    main()
