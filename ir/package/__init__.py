"""OpenVINO IR files in pure Python: read, check, infer, run and write them.

This is the package ``vinoir`` itself; its folders are imported when they are asked for::

    import vinoir

    vinoir.__version__
    model = vinoir.ir.read("model.xml")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import ir as ir
    from . import layers as layers
    from . import schemas as schemas
    from .schemas.version import VERSION

    __version__ = VERSION

_FOLDERS = ("ir", "layers", "schemas")

__all__ = ["__version__", "ir", "layers", "schemas"]

if not TYPE_CHECKING:  # to whom every name would be there

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return import_module(".schemas.version", __name__).VERSION
        if name in _FOLDERS:
            return import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted(__all__)
