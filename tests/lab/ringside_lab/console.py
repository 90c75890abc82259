"""What a guest says over its console: lines that begin with `@lab `, see guest/lib.sh."""

import base64
import binascii
import hashlib
from dataclasses import dataclass, field

MARK = "@lab "


@dataclass
class Console:
    """Reads a console line by line. Files arrive whole or not at all."""

    release: str = ""
    interface: str = ""
    driver: str = ""
    done: bool = False
    notes: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    _open: tuple[str, str] | None = None
    _lines: list[str] = field(default_factory=list)

    def feed(self, line: str) -> list[str] | None:
        """Takes one line. Returns the words of a `control` that the guest now waits for."""
        # A prompt or an unfinished line of the kernel may stand in front.
        _, mark, rest = line.rstrip("\r\n").partition(MARK)
        if not mark:
            return None
        verb, _, words = rest.partition(" ")
        match verb:
            case "+":
                self._lines.append(words)
            case "file":
                name, _, digest = words.partition(" ")
                self._open = (name, digest)
                self._lines = []
            case "end":
                self._close()
            case "up":
                self.release = words
            case "interface":
                self.interface, _, self.driver = words.partition(" ")
            case "note":
                self.notes.append(words)
            case "done":
                self.done = True
            case "control":
                return words.split()
        return None

    def _close(self) -> None:
        if self._open is None:
            return
        name, digest = self._open
        self._open = None
        try:
            data = base64.b64decode("".join(self._lines), validate=True)
        except binascii.Error:
            data = b""
        if hashlib.sha256(data).hexdigest() == digest:
            self.files[name] = data
        else:
            self.damaged.append(name)
