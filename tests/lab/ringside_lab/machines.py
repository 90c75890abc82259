"""The virtual machines: what QEMU is told for each. TCG only, so a lab runs on any host."""

from dataclasses import dataclass
from pathlib import Path

from . import paths
from .apt import Archive

QEMU_PACKAGES = ["qemu-system-arm", "qemu-system-x86", "seabios"]


@dataclass(frozen=True)
class Machine:
    name: str
    arch: str  # Debian's name
    preset: str  # that builds ringside for it
    program: str
    arguments: tuple[str, ...]
    append: str = "console=ttyS0,115200 panic=-1 quiet loglevel=4"


MACHINES = {machine.name: machine for machine in (
    # Guest memory is shared with the device model, which reads descriptors and frames from it.
    Machine("q35", "amd64", "static", "qemu-system-x86_64", (
        "-M", "q35,accel=tcg,memory-backend=ram", "-cpu", "max", "-smp", "2", "-m", "768M",
        "-object", "memory-backend-memfd,id=ram,size=768M,share=on", "-nodefaults"),
        # On a busy host the kernel's test of the timer may see no tick in time, and panics.
        append="console=ttyS0,115200 panic=-1 quiet loglevel=4 no_timer_check"),
    # The boot ROM image and the kernel's stub both lie at address 0, and which one wins changes from run
    # to run: -bios /dev/null leaves only the stub. The number of processors is the machine's own; the
    # tree shows the kernel two.
    Machine("npcm845", "arm64", "static-arm64", "qemu-system-aarch64", (
        "-M", "npcm845-evb", "-bios", "/dev/null", "-m", "1G")),
)}


def nic_arguments(machine: Machine, nic: str, network: str = "user,id=n0") -> list[str]:
    """A NIC of QEMU's own on a user network: 10.0.2.2 is the host's loopback."""
    if machine.name == "npcm845":
        # This board's GMAC must be named: a bare -nic user is not attached to anything.
        kind, _, rest = network.partition(",")
        return ["-nic", f"{kind},model={nic},{rest}"]
    return ["-netdev", network, "-device", f"{nic},netdev=n0,mac=02:00:00:00:00:01"]


def device_model_arguments(socket: Path) -> list[str]:
    """The PCI device that a process behind this socket plays.

    Without x-no-posted-writes QEMU does not wait for register writes: an acknowledgement may then reach
    the model after the next completion and clear that one's interrupt.
    """
    return ["-device", "pcie-root-port,id=port0,bus=pcie.0,chassis=1,slot=1",
            "-device", '{"driver": "vfio-user-pci", "bus": "port0", '
                       '"x-no-posted-writes": true, '
                       f'"socket": {{"type": "unix", "path": "{socket}"}}}}']


class Qemu:
    """QEMU out of an unpacked tree, run by that tree's own loader: no chroot, nothing installed."""

    def __init__(self) -> None:
        # 11.0 is the first with the GMACs of npcm845-evb wired and with vfio-user; trixie has 10.
        archive = Archive("amd64", ["trixie", "trixie-backports"])
        self.tree = archive.unpack(paths.cache() / "qemu", QEMU_PACKAGES, target="trixie-backports")
        self._libraries = self.tree / "usr/lib/x86_64-linux-gnu"

    def environment(self) -> dict[str, str]:
        return {"QEMU_MODULE_DIR": str(self._libraries / "qemu")}

    def command(self, program: str) -> list[str]:
        share = self.tree / "usr/share"
        return [str(self._libraries / "ld-linux-x86-64.so.2"), "--library-path", str(self._libraries),
                "--argv0", program, str(self.tree / "usr/bin" / program),
                "-L", str(share / "qemu"), "-L", str(share / "seabios"),
                "-display", "none", "-no-reboot"]
