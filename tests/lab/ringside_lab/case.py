"""Case files: what to boot, what the guest does, what must hold. The format is in docs/lab.md."""

import ast
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from . import expect
from .errors import LabError
from .machines import MACHINES, Machine

SUITES = ("bookworm", "trixie", "sid")


@dataclass(frozen=True)
class Expectation:
    text: str
    tree: ast.expr
    why: str
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class DeviceModel:
    """A process that plays the NIC: ringside-lab-model CHIP ARGUMENTS... (tests/lab/models)."""
    chip: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    name: str
    summary: str
    machine: Machine
    nic: str
    driver: str
    modules: tuple[str, ...]
    kernels: tuple[str, ...]
    quick: tuple[str, ...]
    guest: str
    timeout_s: float
    append: str
    iperf3: bool
    r8125: str  # "", or how Realtek's module is built: "btf", "plain"
    device: DeviceModel | None
    expectations: tuple[Expectation, ...] = field(repr=False)


# Key -> type and default; a default of ... means that the key must be there.
KEYS = {
    "summary": (str, ...), "machine": (str, ...), "nic": (str, ""), "driver": (str, ...),
    "modules": (list, ...), "kernels": (list, list(SUITES)), "quick": (list, ["sid"]), "guest": (str, ...),
    "timeout_s": (int, 300), "append": (str, ""), "iperf3": (bool, False), "r8125": (str, ""), "device": (dict, None),
    "expect": (list, ...),
}


def parse(name: str, text: str) -> Case:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"{name}.case: {error}") from None

    def bad(what: str) -> LabError:
        return LabError(f"{name}.case: {what}")

    for key in data:
        if key not in KEYS:
            raise bad(f"there is no key {key}; known are {', '.join(KEYS)}")
    values = {}
    for key, (kind, default) in KEYS.items():
        if key not in data and default is ...:
            raise bad(f"{key} is missing")
        values[key] = data.get(key, default)
        if key in data and not isinstance(values[key], kind):
            raise bad(f"{key} must be a {kind.__name__}")
    if values["machine"] not in MACHINES:
        raise bad(f"there is no machine {values['machine']}; known are {', '.join(MACHINES)}")
    for suite in [*values["kernels"], *values["quick"]]:
        if suite not in SUITES:
            raise bad(f"there is no suite {suite}; known are {', '.join(SUITES)}")
    if values["r8125"] not in ("", "btf", "plain"):
        raise bad('r8125 is "btf" or "plain"')
    if bool(values["nic"]) == bool(values["device"]):
        raise bad("exactly one of nic and device says what the port is")
    expectations = []
    for entry in values["expect"]:
        if not isinstance(entry, dict) or not {"that", "why"} <= set(entry) <= {"that", "why", "kernels"}:
            raise bad("an [[expect]] has that, why and perhaps kernels")
        try:
            tree = expect.parse(entry["that"])
        except expect.ExpectationError as error:
            raise bad(str(error)) from None
        expectations.append(Expectation(" ".join(entry["that"].split()), tree, entry["why"],
                                        tuple(entry.get("kernels", SUITES))))
    if not expectations:
        raise bad("a case without expectations cannot fail")
    device = None
    if values["device"] is not None:
        if not isinstance(values["device"].get("chip"), str) or \
                not set(values["device"]) <= {"chip", "arguments"}:
            raise bad("[device] has chip and perhaps arguments")
        device = DeviceModel(values["device"]["chip"], tuple(values["device"].get("arguments", ())))
    return Case(name=name, summary=values["summary"], machine=MACHINES[values["machine"]],
                nic=values["nic"], driver=values["driver"], modules=tuple(values["modules"]),
                kernels=tuple(values["kernels"]), quick=tuple(values["quick"]), guest=values["guest"],
                timeout_s=values["timeout_s"], append=values["append"], iperf3=values["iperf3"],
                r8125=values["r8125"],
                device=device, expectations=tuple(expectations))


def read_all(folder: Path) -> list[Case]:
    return [parse(path.stem, path.read_text()) for path in sorted(folder.glob("*.case"))]
