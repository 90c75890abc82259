"""Debian packages of other suites and architectures, unpacked into folders of the cache.

apt does the downloading and checks the signatures, with a state folder of its own: nothing of the host
changes and nothing is installed. No maintainer script runs, so an unpacked tree has no alternatives
links, no ld.so.cache and no configuration.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from . import paths
from .errors import LabError

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LEFT_OUT = ("./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./usr/share/info")


def _host_codename() -> str:
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    raise LabError("/etc/os-release names no Debian codename: set MIRROR to a Debian archive")


def mirror_in(print_uris: str, codename: str) -> str | None:
    """The Debian archive among the lines of `apt-get update --print-uris`.

    CODENAME-updates is asked for first: archives of other vendors use the codename, too, but not that.
    """
    for suite in (f"{codename}-updates", codename):
        found = re.search(rf"^'(\S+)/dists/{suite}/InRelease'", print_uris, re.MULTILINE)
        if found:
            return found.group(1)
    return None


def mirror() -> str:
    """The archive that this machine's own apt sources use; the environment's MIRROR goes first."""
    chosen = os.environ.get("MIRROR")
    if chosen:
        return chosen.rstrip("/")
    listing = subprocess.run(["apt-get", "update", "--print-uris"], capture_output=True, text=True,
                             check=False).stdout
    found = mirror_in(listing, _host_codename())
    if not found:
        raise LabError("no Debian archive in this machine's apt sources: set MIRROR")
    return found


class Archive:
    """The packages of some suites for one architecture, with an apt state of its own."""

    def __init__(self, arch: str, suites: list[str], components: str = "main"):
        self.arch = arch
        self.suites = suites
        self.components = components
        self.folder = paths.cache() / "apt" / "-".join([arch, *suites])
        self._ready = False

    @property
    def _config(self) -> Path:
        return self.folder / "apt.conf"

    def _run(self, *arguments: str, cwd: Path | None = None) -> str:
        done = subprocess.run(arguments, cwd=cwd, env={**os.environ, "APT_CONFIG": str(self._config)},
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise LabError(f"{' '.join(arguments[:3])} ({self.arch}, {' '.join(self.suites)}): "
                           f"{done.stderr.strip() or done.stdout.strip()[-500:]}")
        return done.stdout

    def prepare(self) -> None:
        """Makes the state and fetches the lists, once: later calls use what is there."""
        if self._ready:
            return
        (self.folder / "cache").mkdir(parents=True, exist_ok=True)
        (self.folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        source = mirror()
        (self.folder / "sources.list").write_text("".join(
            f"deb [arch={self.arch} signed-by={KEYRING}] {source} {suite} {self.components}\n"
            for suite in self.suites))
        self._config.write_text(f"""\
APT::Architecture "{self.arch}"; APT::Architectures {{"{self.arch}";}};
APT::Install-Recommends "false"; APT::Sandbox::User "root";
Acquire::Languages "none"; Acquire::Retries "3";
Dir::State "{self.folder}"; Dir::State::Lists "{self.folder}/lists";
Dir::State::status "{self.folder}/status"; Dir::Cache "{self.folder}/cache";
Dir::Etc::sourcelist "{self.folder}/sources.list"; Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null"; Dir::Etc::preferencesparts "/dev/null";
""")
        if not (self.folder / "updated").exists():
            self.update()
        self._ready = True

    def update(self) -> None:
        self._run("apt-get", "-qq", "update")
        (self.folder / "updated").touch()

    def depends(self, package: str) -> list[str]:
        """Names of the packages that this one depends on."""
        self.prepare()
        text = self._run("apt-cache", "depends", "--no-recommends", "--no-suggests", "--no-conflicts",
                         "--no-breaks", "--no-replaces", "--no-enhances", package)
        return re.findall(r"^ *\|?(?:Pre)?Depends: ([^<\s]+)$", text, re.MULTILINE)

    def unpack(self, into: Path, packages: list[str], closure: bool = True, target: str = "") -> Path:
        """Downloads the packages, with all they depend on unless `closure` is off, and unpacks them.

        Done once for one list of packages: the folder remembers it. `target`: the suite to prefer.
        """
        wanted = hashlib.sha256(repr((sorted(packages), closure, target, self.suites, self.arch))
                                .encode()).hexdigest()
        stamp = into.parent / f"{into.name}.unpacked"
        if stamp.exists() and stamp.read_text() == wanted and into.is_dir():
            return into
        print(f"fetching {' '.join(packages)} ({self.arch}, {' '.join(self.suites)})",
              file=sys.stderr, flush=True)
        self.prepare()
        # A folder for each tree: what an interrupted run left there belongs to this tree and is used.
        archives = self.folder / "cache" / wanted[:16]
        (archives / "partial").mkdir(parents=True, exist_ok=True)
        try:
            self._download(archives, packages, closure, target)
        except LabError:
            # The archive may have moved on since the lists were fetched.
            self.update()
            self._download(archives, packages, closure, target)
        part = into.parent / f"{into.name}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        # As on any system today; packages of older suites still ship files in /bin and /lib.
        for name in ("bin", "sbin", "lib", "lib64"):
            (part / "usr" / name).mkdir(parents=True, exist_ok=True)
            (part / name).symlink_to(f"usr/{name}")
        for package in sorted(archives.glob("*.deb")):
            self._extract(package, part)
        shutil.rmtree(archives)
        shutil.rmtree(into, ignore_errors=True)
        part.rename(into)
        stamp.write_text(wanted)
        return into

    def _download(self, archives: Path, packages: list[str], closure: bool, target: str) -> None:
        if closure:
            prefer = ["-t", target] if target else []
            self._run("apt-get", "-qq", "-y", "-d", "-o", f"Dir::Cache::archives={archives}/", *prefer,
                      "install", *packages)
        else:
            self._run("apt-get", "-qq", "download", *packages, cwd=archives)

    @staticmethod
    def _extract(package: Path, into: Path) -> None:
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)],
                              stdout=subprocess.PIPE) as reader:
            tar = subprocess.run(
                ["tar", "-x", "-C", str(into), "--keep-directory-symlink", "--no-same-owner",
                 *(f"--exclude={name}" for name in LEFT_OUT)], stdin=reader.stdout, check=False)
        if reader.returncode != 0 or tar.returncode != 0:
            raise LabError(f"cannot unpack {package.name}")
