"""Initramfs archives: what a guest has to begin with. Written here, so no root rights are needed."""

import lzma
import re
import stat
import subprocess
from pathlib import Path, PurePosixPath

from .errors import LabError


class Cpio:
    """A `newc` archive that grows in memory."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._names: set[str] = set()

    def _entry(self, name: str, mode: int, data: bytes = b"") -> None:
        self._names.add(name)
        fields = [len(self._names), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        self._parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]

    def folder(self, name: str) -> None:
        for parent in [*reversed(PurePosixPath(name).parents), PurePosixPath(name)]:
            if str(parent) not in (".", *self._names):
                self._entry(str(parent), stat.S_IFDIR | 0o755)

    def file(self, name: str, data: bytes, mode: int = 0o755) -> None:
        if name not in self._names:
            self.folder(str(PurePosixPath(name).parent))
            self._entry(name, stat.S_IFREG | mode, data)

    def link(self, name: str, to: str) -> None:
        if name not in self._names:
            self.folder(str(PurePosixPath(name).parent))
            self._entry(name, stat.S_IFLNK | 0o777, to.encode())

    def has(self, name: str) -> bool:
        return name in self._names

    def bytes(self) -> bytes:
        end = Cpio()
        end._entry("TRAILER!!!", 0)
        return b"".join(self._parts + end._parts)


def parse_modules_dep(text: str) -> dict[str, list[str]]:
    """File of a module -> files that it needs, as modules.dep has them."""
    return {name: needs.split() for name, _, needs in (line.partition(":") for line in text.splitlines())}


def module_name(file: str) -> str:
    """dwmac_generic of kernel/drivers/.../dwmac-generic.ko.xz"""
    return re.sub(r"\.ko(\.xz)?$", "", PurePosixPath(file).name).replace("-", "_")


def load_order(dependencies: dict[str, list[str]], wanted: list[str], builtin: set[str]) -> list[str]:
    """Files of the wanted modules and of all they need, each after what it needs."""
    files = {module_name(file): file for file in dependencies}
    order: list[str] = []
    for name in wanted:
        plain = name.replace("-", "_")
        if plain in builtin:
            continue
        if plain not in files:
            raise LabError(f"this kernel has no module {name}")
        # modules.dep lists what must be loaded first last.
        for file in [*reversed(dependencies[files[plain]]), files[plain]]:
            if file not in order:
                order.append(file)
    return order


def add_modules(cpio: Cpio, folder: Path, wanted: list[str]) -> None:
    """Puts the modules into /modules, and their order into /modules/order."""
    dependencies = parse_modules_dep((folder / "modules.dep").read_text())
    builtin_list = folder / "modules.builtin"
    builtin = {module_name(line) for line in builtin_list.read_text().split()} \
        if builtin_list.exists() else set()
    order = load_order(dependencies, wanted, builtin)
    for file in order:
        data = (folder / file).read_bytes()
        cpio.file(f"modules/{module_name(file)}.ko", lzma.decompress(data) if file.endswith(".xz") else data)
    cpio.file("modules/order", "".join(f"{module_name(file)}\n" for file in order).encode(), 0o644)


def needed_libraries(readelf: str) -> tuple[str, list[str]]:
    """The interpreter and the DT_NEEDED names in the output of `readelf -l -d`."""
    interpreter = re.search(r"interpreter: ([^\]]+)\]", readelf)
    return (interpreter.group(1) if interpreter else "",
            re.findall(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]", readelf))


def inside(tree: Path, name: str) -> Path:
    """The file behind a name of the tree; an absolute link means a place in the tree, not on the host."""
    path = tree / name
    while path.is_symlink():
        to = path.readlink()
        path = tree / to.relative_to("/") if to.is_absolute() else path.parent / to
    if not path.is_file():
        raise LabError(f"{tree.name} has no {name}")
    return path


def add_program(cpio: Cpio, tree: Path, program: str) -> None:
    """A program of an unpacked tree, with the libraries that it needs, under the same names."""
    waiting = [program]
    while waiting:
        name = waiting.pop()
        if cpio.has(name):
            continue
        path = inside(tree, name)
        cpio.file(name, path.read_bytes())
        text = subprocess.run(["readelf", "-l", "-d", "-W", str(path)], capture_output=True, text=True,
                              check=True).stdout
        interpreter, libraries = needed_libraries(text)
        if interpreter:
            waiting.append("usr" + interpreter)
        for library in libraries:
            places = list((tree / "usr/lib").glob(f"*-linux-gnu/{library}"))
            if not places:
                raise LabError(f"{name} needs {library}, which {tree.name} does not have")
            waiting.append(str(places[0].relative_to(tree)))
