"""What a run needs on the host's side: a sink for datagrams, an iperf3 server, a device model."""

import os
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

from . import paths
from .errors import LabError


class Sink:
    """Takes datagrams on the loopback and counts them, so that no ICMP error comes back to the guest."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.datagrams = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                data = self._socket.recv(65536)
            except OSError:
                return
            if not data:
                return
            self.datagrams += 1

    def close(self) -> None:
        # An empty datagram ends the thread, which a close alone would not wake.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join(5)
        self._socket.close()


class Iperf3Server:
    """iperf3 on a free port of the loopback."""

    def __init__(self) -> None:
        program = shutil.which("iperf3")
        if not program:
            raise LabError("iperf3 is missing: tools/packages lab")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._process = subprocess.Popen([program, "-s", "-B", "127.0.0.1", "-p", str(self.port)],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


class DeviceProcess:
    """A device model (tests/lab/models): takes its orders from a FIFO and keeps its own log of what really happened."""

    START_S = 10.0

    def __init__(self, chip: str, arguments: tuple[str, ...], folder: Path) -> None:
        path = paths.SOURCE / "build/lab/tests/lab/models/ringside-lab-model"
        if not path.exists():
            raise LabError("the device models are not built: tests/lab/run --build")
        self.socket = folder / "device.sock"
        self.log = folder / "device.log"
        fifo = folder / "device.control"
        os.mkfifo(fifo)
        with (folder / "device.stderr").open("wb") as output:
            self._process = subprocess.Popen(
                [str(path), chip, "--socket", str(self.socket), "--log", str(self.log), "--control", str(fifo),
                 *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        # Opened for both ways: that never blocks, and the model never sees the end of the file.
        self._control = os.open(fifo, os.O_RDWR | os.O_CLOEXEC)
        deadline = time.monotonic() + self.START_S
        while not self.socket.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise LabError(f"the device model {chip} did not start: "
                               f"{(folder / 'device.stderr').read_text().strip()}")
            time.sleep(0.02)

    def control(self, line: str) -> None:
        os.write(self._control, line.encode() + b"\n")

    def close(self) -> None:
        # It ends by itself when QEMU has hung up, with its log written out.
        for stop in (lambda: None, self._process.terminate, self._process.kill):
            stop()
            try:
                self._process.wait(3)
                break
            except subprocess.TimeoutExpired:
                pass
        os.close(self._control)
