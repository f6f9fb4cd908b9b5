"""Write a wheel called torch that has no code: pip then takes PyTorch for installed, and leaves it alone.

    python -m tensorgrad.as_torch.wheel wheels
    pip install wheels/torch-*.whl

Packages whose metadata demand torch install after that as usual. `import torch` fails as before, except under
`python -m tensorgrad` and after `install_as_torch()`. `pip uninstall torch` removes it.
"""
from __future__ import annotations

import sys
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

from ..version import __version__

SUMMARY = "The name torch, for packages that run over tensorgrad; it has no code"


def write_wheel(folder: str | Path) -> Path:
    """Write the wheel into a folder, which is made if need be, and return its path."""
    stem = f"torch-{__version__}"
    files = {"METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {__version__}\nSummary: {SUMMARY}\n",
             "WHEEL": "Wheel-Version: 1.0\nGenerator: tensorgrad\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files = {f"{stem}.dist-info/{name}": text for name, text in files.items()}
    record = f"{stem}.dist-info/RECORD"
    files[record] = "".join(f"{name},sha256={_digest(text)},{len(text)}\n" for name, text in files.items()) + \
        f"{record},,\n"
    path = Path(folder) / f"{stem}-py3-none-any.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


def _digest(text: str) -> str:
    return urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        raise SystemExit("usage: python -m tensorgrad.as_torch.wheel FOLDER")
    print(write_wheel(sys.argv[1]))
