"""The command: picks cases, prepares, runs them one after the other, reports as CTest does."""

import argparse
import fcntl
import signal
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from . import build, case as cases, expect, guest, kernels, machines, paths, support
from .errors import LabError

DESCRIPTION = """\
Boots stock Debian kernels in virtual machines, with the real network drivers, and checks what ringside
says of them against what the guest and the device counted. Nothing is installed on this machine but
`tools/packages lab`; everything that is fetched goes to ~/.cache/ringside-lab (RINGSIDE_LAB_CACHE).
"""


@dataclass
class Result:
    """One case on one kernel."""
    name: str
    case: cases.Case
    kernel: kernels.Kernel | None
    seconds: float
    failures: list[str]
    outcome: guest.Outcome | None
    folder: Path


def instances(all_cases: list[cases.Case], chosen: list[str], quick: bool) -> list[tuple[cases.Case, str]]:
    """Pairs of case and suite. A name is CASE or CASE/SUITE, and may end in *."""
    pairs = [(case, suite) for case in all_cases for suite in case.kernels]

    def named(pair: tuple[cases.Case, str], name: str) -> bool:
        full = f"{pair[0].name}/{pair[1]}"
        if name.endswith("*"):
            return full.startswith(name[:-1])
        return name in (pair[0].name, full)

    for name in chosen:
        if not any(named(pair, name) for pair in pairs):
            raise LabError(f"there is no case {name}: see tests/lab/run --list")
    if chosen:
        return [pair for pair in pairs if any(named(pair, name) for name in chosen)]
    return [pair for pair in pairs if not quick or pair[1] in pair[0].quick]


def check(case: cases.Case, suite: str, outcome: guest.Outcome) -> list[str]:
    """What did not hold, each with the values that it was about."""
    failures = list(outcome.problems)
    for expectation in case.expectations:
        if suite not in expectation.kernels:
            continue
        try:
            holds = bool(expect.evaluate(expectation.tree, outcome.values))
            detail = "; ".join(expect.explain(expectation.tree, outcome.values))
        except (expect.ExpectationError, TypeError, ValueError, ArithmeticError) as error:
            holds, detail = False, str(error)
        if not holds:
            failures.append(f"expected {expectation.text}\n    because {expectation.why}\n    but {detail}")
    return failures


def run_one(case: cases.Case, suite: str, qemu: machines.Qemu) -> Result:
    folder = paths.cache() / "runs" / f"{case.name}-{suite}"
    begin = time.monotonic()
    kernel = outcome = None
    try:
        kernel = kernels.fetch(suite, case.machine.arch)
        outcome = guest.Run(case, kernel, qemu, folder).run()
        failures = check(case, suite, outcome)
    except LabError as error:
        failures = [str(error)]
    return Result(f"{case.name}/{suite}", case, kernel, time.monotonic() - begin, failures, outcome, folder)


def report_junit(results: list[Result], path: Path) -> None:
    suite = ElementTree.Element("testsuite", name="lab", tests=str(len(results)),
                                failures=str(sum(bool(r.failures) for r in results)))
    for result in results:
        element = ElementTree.SubElement(suite, "testcase", name=result.name, classname="lab",
                                         time=f"{result.seconds:.1f}")
        if result.failures:
            ElementTree.SubElement(element, "failure").text = "\n".join(result.failures)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def run_all(pairs: list[tuple[cases.Case, str]], qemu: machines.Qemu) -> list[Result]:
    results: list[Result] = []
    width = max(len(f"{case.name}/{suite}") for case, suite in pairs) + 24
    for number, (case, suite) in enumerate(pairs, 1):
        result = run_one(case, suite, qemu)
        kernel = f" ({result.kernel.release})" if result.kernel else ""
        label = f"{result.name}{kernel} "
        verdict = "***Failed" if result.failures else "   Passed"
        print(f"{number:3}/{len(pairs)} {label:.<{width}} {verdict} {result.seconds:7.1f} s", flush=True)
        for failure in result.failures:
            print(f"    {failure}")
        if result.failures:
            print(f"    logs: {result.folder}", flush=True)
        results.append(result)
    return results


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/lab/run", description=DESCRIPTION,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="one kernel for each driver (the default)")
    which.add_argument("--full", action="store_true", help="every case on every kernel")
    which.add_argument("--list", action="store_true", help="only say what there is")
    which.add_argument("--build", action="store_true", help="only fetch libraries and build")
    parser.add_argument("--no-build", action="store_true", help="use what is built already")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="also write the results as JUnit XML")
    parser.add_argument("--write-support", action="store_true",
                        help="write the table in docs/kernel-support.md from what was seen")
    parser.add_argument("case", nargs="*", help="CASE or CASE/SUITE, perhaps with * at its end")
    return parser.parse_args(arguments)


def prepare(pairs: list[tuple[cases.Case, str]]) -> None:
    for preset in sorted({case.machine.preset for case, _ in pairs}):
        build.build(preset, build.GUEST_TARGETS)
    if any(case.device for case, _ in pairs) and build.has_models():
        build.build("lab", ["ringside_lab_models"])


@contextmanager
def only_run():
    """Two runs at once would write the same folders, and disturb each other's measurements."""
    paths.cache().mkdir(parents=True, exist_ok=True)
    with (paths.cache() / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError(f"another run uses {paths.cache()}: wait for it, or set RINGSIDE_LAB_CACHE") from None
        yield


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    # As for ^C: what was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    try:
        pairs = instances(cases.read_all(paths.LAB / "cases"), options.case, not (options.full or options.list))
        if options.list:
            for case, suite in pairs:
                print(f"{case.name + '/' + suite:32} {'quick' if suite in case.quick else '     '}  "
                      f"{case.summary}")
            return 0
        with only_run():
            if not options.no_build:
                prepare(pairs)
            if options.build:
                return 0
            begin = time.monotonic()
            results = run_all(pairs, machines.Qemu())
        failed = [result for result in results if result.failures]
        print(f"\n{len(results) - len(failed)} of {len(results)} passed in {time.monotonic() - begin:.0f} s")
        if options.junit:
            report_junit(results, options.junit)
        if options.write_support:
            support.write(results, paths.SOURCE / "docs/kernel-support.md")
    except LabError as error:
        print(f"tests/lab/run: {error}", file=sys.stderr)
        return 3
    if failed:
        print("failed: " + " ".join(result.name for result in failed))
    return 1 if failed else 0
