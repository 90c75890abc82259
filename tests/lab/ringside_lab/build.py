"""Builds what the guests run and the device models, with the presets of the project."""

import os
import subprocess
import sys
from pathlib import Path

from . import paths
from .apt import Archive
from .errors import LabError

SYSROOT_PACKAGES = ["libbpf-dev", "libelf-dev", "zlib1g-dev", "libzstd-dev", "libfdt-dev", "libxxhash-dev"]
GUEST_TARGETS = ["ringside", "ringside_lab_guest"]


def sysroot() -> Path:
    """The arm64 libraries: static archives and headers, so without what they depend on."""
    return Archive("arm64", ["bookworm"]).unpack(paths.cache() / "sysroot-arm64", SYSROOT_PACKAGES,
                                                 closure=False)


def build(preset: str, targets: list[str]) -> None:
    environment = dict(os.environ)
    if preset == "static-arm64":
        environment["RINGSIDE_SYSROOT"] = str(sysroot())
    jobs = subprocess.run([str(paths.SOURCE / "tools/jobs")], capture_output=True, text=True,
                          check=True).stdout.strip()
    print(f"building {preset}: {' '.join(targets)}", file=sys.stderr, flush=True)
    for command in (["cmake", "--preset", preset],
                    ["cmake", "--build", "--preset", preset, "-j", jobs, "--target", *targets]):
        done = subprocess.run(command, cwd=paths.SOURCE, env=environment, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise LabError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4000:]}")


def has_models() -> bool:
    return (paths.LAB / "models/CMakeLists.txt").exists()
