"""Where things are: the source tree, the cache, the build folders."""

import os
from pathlib import Path

LAB = Path(__file__).resolve().parent.parent
SOURCE = LAB.parent.parent


def cache() -> Path:
    """The folder that holds everything that was fetched; it can be deleted at any time."""
    chosen = os.environ.get("RINGSIDE_LAB_CACHE")
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base).absolute() / "ringside-lab"
