"""The table of docs/kernel-support.md that the lab writes: what doctor found on each kernel."""

from pathlib import Path
from typing import Any

from .errors import LabError

BEGIN = "<!-- written by tests/lab/run --full --write-support -->\n"
END = "<!-- end of what the lab wrote -->\n"


def rows(results: list[Any]) -> list[tuple[str, ...]]:
    """One row for each kernel and driver: who, tiers, hooks that are missing, cases that passed."""
    seen: dict[tuple[str, str, str], dict[str, Any]] = {}
    for result in results:
        doctor = result.outcome.values.get("doctor") if result.outcome else None
        if result.kernel is None or not isinstance(doctor, dict):
            continue
        key = (result.kernel.release, result.kernel.arch, doctor["interface"]["driver"])
        entry = seen.setdefault(key, {"doctor": doctor, "passed": 0, "cases": 0})
        entry["cases"] += 1
        entry["passed"] += not result.failures
    table = []
    for (release, arch, driver), entry in sorted(seen.items()):
        doctor = entry["doctor"]
        tiers = ", ".join(tier["name"] for tier in doctor["tiers"] if tier["available"]) or "none"
        hooks = [f"{hook['name']}: {hook['why_not']}" for hook in doctor["hooks"] if hook["how"] == "-"]
        have = len(doctor["hooks"]) - len(hooks)
        table.append((release, arch, driver, tiers, f"{have} of {len(doctor['hooks'])}",
                      "; ".join(hooks) or "-", f"{entry['passed']} of {entry['cases']}"))
    return table


def render(results: list[Any]) -> str:
    head = ("kernel", "architecture", "driver", "tiers", "hooks", "missing", "cases passed")
    lines = [head, ("---",) * len(head), *rows(results)]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def replace(text: str, table: str) -> str:
    """The document with the table between the markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise LabError("docs/kernel-support.md has lost the markers of the lab's table")
    return before + begin + table + end + after


def write(results: list[Any], path: Path) -> None:
    path.write_text(replace(path.read_text(), render(results)))
