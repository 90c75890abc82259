"""One guest: from a case and a kernel to everything that the run has left behind."""

import json
import os
import selectors
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import initramfs, machines, paths
from .apt import Archive
from .case import Case
from .console import Console
from .errors import LabError
from .host import DeviceProcess, Iperf3Server, Sink
from .kernels import Kernel, r8125_module

# Of Debian 12: its programs run on every kernel since 3.2, and busybox is one static file.
USERLAND = ["busybox-static", "ethtool", "iproute2", "iperf3"]
PROGRAMS = ["usr/sbin/ethtool", "usr/sbin/tc", "usr/bin/iperf3"]

# Who is at the other end: QEMU's user network, or the peer in the device model.
USER_NETWORK = {"ADDRESS": "10.0.2.15/24", "PEER": "10.0.2.2", "PEER_MAC": "52:55:0a:00:02:02"}
DEVICE_NETWORK = {"ADDRESS": "10.0.0.1/24", "PEER": "10.0.0.2", "PEER_MAC": "02:00:00:00:00:02"}


@dataclass
class Outcome:
    """What a run has left behind; `values` is what expectations are evaluated over."""
    console: Console
    values: dict[str, Any]
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0


def userland(arch: str) -> Path:
    return Archive(arch, ["bookworm"]).unpack(paths.cache() / f"guest-{arch}", USERLAND)


def build_initramfs(case: Case, kernel: Kernel, environment: dict[str, object]) -> bytes:
    tree = userland(kernel.arch)
    cpio = initramfs.Cpio()
    for folder in ("proc", "sys", "dev", "tmp", "run", "job"):
        cpio.folder(folder)
    for name in ("lib", "lib64", "sbin"):
        cpio.link(name, f"usr/{name}")
    cpio.file("bin/busybox", (tree / "usr/bin/busybox").read_bytes())
    cpio.link("bin/sh", "busybox")
    for program in PROGRAMS:
        initramfs.add_program(cpio, tree, program)
    initramfs.add_modules(cpio, kernel.modules, ["af_packet", *case.modules])
    if case.r8125:
        cpio.file("modules/r8125.ko", r8125_module(kernel, case.r8125 == "btf").read_bytes())
    build = paths.SOURCE / "build" / case.machine.preset
    cpio.file("bin/ringside", (build / "tools/ringside").read_bytes())
    cpio.file("bin/lab_sender", (build / "tests/lab/lab_sender").read_bytes())
    cpio.file("init", (paths.LAB / "guest/init").read_bytes())
    # Numbers and names of our own, never text from outside: nothing to quote.
    head = "".join(f"{name}={value}\n" for name, value in environment.items())
    cpio.file("job/lib.sh", head.encode() + (paths.LAB / "guest/lib.sh").read_bytes())
    cpio.file("job/job.sh", case.guest.encode())
    return cpio.bytes()


def decode(files: dict[str, bytes]) -> dict[str, Any]:
    """Emitted files as values: JSON where a file is JSON, its text where it is not."""
    values: dict[str, Any] = {}
    for name, data in files.items():
        text = data.decode(errors="replace")
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    return values


class Monitor:
    """QEMU's human monitor, by way of QMP."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(10)
        self._socket.connect(str(path))
        self._stream = self._socket.makefile("rw")
        self._stream.readline()  # greeting
        self._ask({"execute": "qmp_capabilities"})

    def _ask(self, request: dict[str, Any]) -> Any:
        self._stream.write(json.dumps(request) + "\n")
        self._stream.flush()
        while True:
            answer = json.loads(self._stream.readline())
            if "error" in answer:
                raise LabError(f"QEMU: {answer['error']}")
            if "return" in answer:
                return answer["return"]

    def command(self, line: str) -> None:
        said = self._ask({"execute": "human-monitor-command", "arguments": {"command-line": line}})
        if said:
            raise LabError(f"QEMU says of {line!r}: {said.strip()}")


class Run:
    """Boots the case on the kernel; `folder` holds its files and logs."""

    def __init__(self, case: Case, kernel: Kernel, qemu: machines.Qemu, folder: Path) -> None:
        self._case = case
        self._kernel = kernel
        self._qemu = qemu
        self._folder = folder
        self._device: DeviceProcess | None = None
        self._problems: list[str] = []

    def run(self) -> Outcome:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        begin = time.monotonic()
        sink = Sink()
        server = Iperf3Server() if self._case.iperf3 else None
        try:
            (self._folder / "initramfs").write_bytes(build_initramfs(self._case, self._kernel, {
                "SINK_PORT": sink.port, "IPERF3_PORT": server.port if server else 0,
                **(DEVICE_NETWORK if self._case.device else USER_NETWORK)}))
            if self._case.device:
                self._device = DeviceProcess(self._case.device.chip, self._case.device.arguments,
                                             self._folder)
            console = self._boot()
        finally:
            if self._device:
                self._device.close()
            if server:
                server.close()
            sink.close()
            (self._folder / "initramfs").unlink(missing_ok=True)
        values = decode(console.files)
        for name, value in values.items():
            suffix = "txt" if isinstance(value, str) else "json"
            (self._folder / f"{name}.{suffix}").write_bytes(console.files[name])
        values["sink"] = {"datagrams": sink.datagrams}
        if self._device and self._device.log.exists():
            values["device"] = [json.loads(line) for line in self._device.log.read_text().splitlines()]
        self._judge(console)
        return Outcome(console, values, self._problems, time.monotonic() - begin)

    def _judge(self, console: Console) -> None:
        if not console.release:
            self._problems.append("the guest did not come up")
        elif not console.done:
            self._problems.append("the guest did not get to its end")
        elif console.release != self._kernel.release:
            self._problems.append(f"the guest runs {console.release}, not {self._kernel.release}")
        if console.release and console.driver != self._case.driver:
            self._problems.append(f"the port has the driver {console.driver or 'none'}, "
                                  f"not {self._case.driver}")
        self._problems += [f"{name} came damaged over the console" for name in console.damaged]

    def _command(self, monitor: Path) -> list[str]:
        case, machine = self._case, self._case.machine
        command = [*self._qemu.command(machine.program), *machine.arguments,
                   "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
                   "-qmp", f"unix:{monitor},server=on,wait=off",
                   "-kernel", str(self._kernel.image), "-initrd", str(self._folder / "initramfs"),
                   "-append", f"{machine.append} {case.append}".strip()]
        if machine.name == "npcm845":
            tree = self._folder / "machine.dtb"
            subprocess.run(["dtc", "-q", "-I", "dts", "-O", "dtb", "-o", str(tree),
                            str(paths.LAB / "machines/npcm845.dts")], check=True)
            command += ["-dtb", str(tree)]
        if self._device:
            return command + machines.device_model_arguments(self._device.socket)
        return command + machines.nic_arguments(machine, case.nic)

    def _boot(self) -> Console:
        monitor = self._folder / "monitor.sock"
        command = self._command(monitor)
        (self._folder / "qemu.command").write_text("\n".join(command) + "\n")
        console = Console()
        with (self._folder / "console.log").open("wb") as log, \
                (self._folder / "qemu.stderr").open("wb") as errors, \
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                 env={**os.environ, **self._qemu.environment()}) as process:
            try:
                self._follow(process, console, log, monitor)
            finally:
                process.kill()
        if not console.release:
            said = (self._folder / "qemu.stderr").read_text(errors="replace").strip()
            if said:
                self._problems.append(f"QEMU: {said.splitlines()[-1]}")
        return console

    def _follow(self, process: subprocess.Popen[bytes], console: Console, log: Any, monitor: Path) -> None:
        assert process.stdin and process.stdout
        deadline = time.monotonic() + self._case.timeout_s
        waiting = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    self._problems.append(f"not done after {self._case.timeout_s:.0f} s")
                    return
                if not selector.select(left):
                    continue
                data = os.read(process.stdout.fileno(), 65536)
                if not data:
                    return
                log.write(data)
                log.flush()
                *lines, waiting = (waiting + data).split(b"\n")
                for line in lines:
                    words = console.feed(line.decode(errors="replace"))
                    if words is not None:
                        self._control(words, monitor)
                        process.stdin.write(b"ok\n")
                        process.stdin.flush()

    def _control(self, words: list[str], monitor: Path) -> None:
        target, *rest = words or [""]
        if target == "device" and self._device:
            self._device.control(" ".join(rest))
        elif target == "qemu":
            Monitor(monitor).command(" ".join(rest))
        else:
            raise LabError(f"the guest asks for a control of {target!r}, which this case does not have")
