"""What was written lies in this machine's memory until it is asked to bring it to the disk; before that a power cut takes it back."""

from __future__ import annotations

import os
from pathlib import Path


def keep(folder: Path, top: Path) -> None:
    """When this returns, the files below `folder` outlive a power cut, and so do the names of all of them and of the folders above, `top` included. Raises
    OSError."""
    for path, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(path) / name)
        sync(Path(path))
    above = folder
    while above != top:
        above = above.parent
        sync(above)


def sync(path: Path) -> None:
    """The same of one file or, of a folder, of the names in it. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
