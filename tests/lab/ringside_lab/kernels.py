"""Debian kernels, found by suite: the newest one of each, never one fixed version."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import paths
from .apt import Archive
from .errors import LabError


@dataclass(frozen=True)
class Kernel:
    suite: str
    arch: str
    release: str  # as uname -r prints it
    image: Path
    modules: Path  # the folder with modules.dep

    @property
    def series(self) -> str:
        """7.2 of 7.2.13+deb14-amd64"""
        return ".".join(re.split(r"[.+-]", self.release)[:2])


def image_packages(depends, package: str) -> list[str]:
    """The packages behind a metapackage that hold image and modules: one, or several since 7.x.

    `depends` gives the direct dependencies of a name.
    """
    found: list[str] = []
    waiting = [package]
    while waiting:
        for name in depends(waiting.pop()):
            if re.match(r"linux-(image|binary|modules|base)-[0-9]", name) and name not in found:
                found.append(name)
                waiting.append(name)
    return sorted(found)


def _unpack_newest(archive: Archive, tree: Path) -> list[str]:
    def names() -> list[str]:
        found = image_packages(archive.depends, f"linux-image-{archive.arch}")
        if not found:
            raise LabError(f"{archive.suites[0]} has no linux-image-{archive.arch}")
        return found

    try:
        archive.unpack(tree, names(), closure=False)
    except LabError:
        # A suite moves on: the lists are fresh now, and may name another kernel.
        archive.unpack(tree, names(), closure=False)
    return names()


def r8125_module(kernel: Kernel, with_btf: bool) -> Path:
    """Realtek's r8125 for this kernel, built once. Without BTF is possible only where the headers lack it."""
    cache = paths.cache()
    module = cache / "r8125" / f"{kernel.release}-{'btf' if with_btf else 'plain'}" / "r8125.ko"
    if module.exists():
        return module
    module.parent.mkdir(parents=True, exist_ok=True)
    command = [str(paths.LAB / "build_r8125"), kernel.suite, kernel.release, str(cache), str(module)]
    # Headers of 6.12 and later bring the BTF by themselves.
    if with_btf and kernel.suite == "bookworm":
        command += ["--btf", str(kernel.image)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"building r8125 for {kernel.release} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return module


def fetch(suite: str, arch: str) -> Kernel:
    """Image and modules of the suite's kernel, from the cache or the archive."""
    archive = Archive(arch, [suite])
    folder = paths.cache() / "kernels" / f"{suite}-{arch}"
    packages = folder / "packages"
    tree = folder / "tree"
    if packages.exists():
        names = packages.read_text().split()
    else:
        names = _unpack_newest(archive, tree)
        packages.write_text("\n".join(names) + "\n")

    releases = [path.name for path in (tree / "usr/lib/modules").iterdir()]
    if len(releases) != 1:
        raise LabError(f"{' '.join(names)}: expected the modules of one kernel, found {releases}")
    release = releases[0]
    modules = tree / "usr/lib/modules" / release
    if not (modules / "modules.dep").exists():
        depmod = shutil.which("depmod", path="/usr/sbin:/sbin:/usr/bin:/bin")
        if not depmod:
            raise LabError("depmod is missing: tools/packages lab")
        # It warns of files that only matter for a system that is booted from this tree.
        subprocess.run([depmod, "-b", str(tree), release], check=True, stderr=subprocess.DEVNULL)
    candidates = [tree / "boot" / f"vmlinuz-{release}", modules / "vmlinuz"]
    for image in candidates:
        if image.is_file():
            return Kernel(suite, arch, release, image, modules)
    raise LabError(f"{' '.join(names)}: no kernel image in {tree}")
