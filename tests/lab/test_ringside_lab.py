"""Tests of the lab's own parsers; run by ctest, without network and without a virtual machine."""

import base64
import hashlib
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from ringside_lab import apt, case, console, expect, guest, initramfs, kernels, main, paths, support  # noqa: E402
from ringside_lab.errors import LabError  # noqa: E402


def value(expression, **values):
    return expect.evaluate(expect.parse(expression), values)


class Expect(unittest.TestCase):
    def test_compares_looked_up_values(self):
        self.assertTrue(value("a.b[1].c - 3 == 4", a={"b": [0, {"c": 7}]}))
        self.assertFalse(value("0 < a <= 5", a=6))
        self.assertEqual(value("[x.n for x in list if x.n > 1]", list=[{"n": 1}, {"n": 2}]), [2])
        self.assertEqual(value("sum(x.n for x in list)", list=[{"n": 1}, {"n": 2}]), 3)
        self.assertTrue(value("'Reset' in log and log is not None", log="a Reset b"))

    def test_missing_values_are_errors_and_never_true(self):
        for text in ("a.missing == 1", "missing", "a.b[9]", "a.b.c"):
            with self.assertRaises(expect.ExpectationError):
                value(text, a={"b": [1]})

    def test_is_no_way_to_run_code(self):
        for text in ("__import__('os')", "(lambda: 1)()", "a.b()", "[x for x in a for y in x]((1))",
                     "open('/etc/passwd')", "len(a, key=b)", "f'{a}'"):
            with self.assertRaises(expect.ExpectationError):
                expect.parse(text)

    def test_explains_with_the_values_compared(self):
        tree = expect.parse("a.x == a.y + 1")
        self.assertEqual(sorted(expect.explain(tree, {"a": {"x": 5, "y": 6}})), ["a.x = 5", "a.y = 6"])
        tree = expect.parse("len([i for i in a.list if i.n]) == 1")
        self.assertEqual(expect.explain(tree, {"a": {"list": [{"n": 0}]}}),
                         ["len([i for i in a.list if i.n]) = 0", "[i for i in a.list if i.n] = []",
                          "a.list = [{'n': 0}]"])


class Cases(unittest.TestCase):
    GOOD = '''
summary = "s"
machine = "q35"
nic = "e1000e"
driver = "e1000e"
modules = ["e1000e"]
guest = "true"
[[expect]]
that = "1 == 1"
why = "arithmetic"
'''

    def test_every_case_of_the_lab_parses(self):
        found = case.read_all(paths.LAB / "cases")
        self.assertGreater(len(found), 2)
        for one in found:
            with self.subTest(one.name):
                self.assertTrue(set(one.quick) <= set(one.kernels))
                # A shell that only parses: a typing error shows here and not in a guest.
                done = subprocess.run(["sh", "-n"], input=one.guest, text=True, capture_output=True, check=False)
                self.assertEqual(done.stderr, "")

    def test_mistakes_are_refused(self):
        self.assertEqual(case.parse("x", self.GOOD).nic, "e1000e")
        for old, new in (('summary = "s"', ""), ('"q35"', '"q36"'), ("guest", "gust"), ('"true"', "1"),
                         ("1 == 1", "1 =="), ('why = "arithmetic"', ""), ('nic = "e1000e"', ""),
                         ("[[expect]]", "[[expectation]]")):
            with self.subTest(new), self.assertRaises(LabError):
                case.parse("x", self.GOOD.replace(old, new))

    def test_names_pick_instances(self):
        one = case.parse("x", self.GOOD)
        pick = lambda *names, quick=False: [s for _, s in main.instances([one], list(names), quick)]  # noqa: E731
        self.assertEqual(pick(), list(case.SUITES))
        self.assertEqual(pick(quick=True), ["sid"])
        self.assertEqual(pick("x/trixie", quick=True), ["trixie"])
        self.assertEqual(pick("x*"), list(case.SUITES))
        with self.assertRaises(LabError):
            pick("y")


class ConsoleLines(unittest.TestCase):
    @staticmethod
    def emitted(data, digest=None):
        text = base64.encodebytes(data).decode().splitlines()
        return [f"@lab file x {digest or hashlib.sha256(data).hexdigest()}", *(f"@lab + {line}" for line in text),
                "@lab end x"]

    def test_files_arrive_whole(self):
        said = console.Console()
        data = bytes(range(256)) * 3
        for line in ["noise", *self.emitted(data), "# @lab up 1.2.3\r\n", "@lab interface eth0 drv", "@lab done"]:
            self.assertIsNone(said.feed(line))
        self.assertEqual(said.files, {"x": data})
        self.assertEqual((said.release, said.interface, said.driver, said.done), ("1.2.3", "eth0", "drv", True))

    def test_a_line_cut_by_the_kernel_is_damage(self):
        said = console.Console()
        lines = self.emitted(b"some text that is long enough" * 9)
        lines[2] = lines[2][:20] + "[ 1.0] Oops"
        for line in lines:
            said.feed(line)
        self.assertEqual((said.files, said.damaged), ({}, ["x"]))

    def test_controls_come_back_as_words(self):
        self.assertEqual(console.Console().feed("@lab control device delay 5000"), ["device", "delay", "5000"])

    def test_json_is_decoded_and_text_is_kept(self):
        self.assertEqual(guest.decode({"a": b'{"n": 1}', "b": b"plain"}), {"a": {"n": 1}, "b": "plain"})


class Initramfs(unittest.TestCase):
    def test_modules_come_after_what_they_need(self):
        needs = initramfs.parse_modules_dep("k/a.ko.xz: k/b-b.ko.xz k/c.ko.xz\nk/b-b.ko.xz: k/c.ko.xz\nk/c.ko.xz:\n")
        self.assertEqual(initramfs.load_order(needs, ["a", "b_b", "in-kernel"], {"in_kernel"}),
                         ["k/c.ko.xz", "k/b-b.ko.xz", "k/a.ko.xz"])
        with self.assertRaises(LabError):
            initramfs.load_order(needs, ["d"], set())

    def test_cpio_reads_the_archive(self):
        cpio = initramfs.Cpio()
        cpio.file("a/b/file", b"text", 0o644)
        cpio.link("a/link", "b/file")
        found = subprocess.run(["cpio", "-t", "--quiet"], input=cpio.bytes(), capture_output=True, check=True)
        self.assertEqual(found.stdout.split(), [b"a", b"a/b", b"a/b/file", b"a/link"])

    def test_links_stay_inside_the_tree(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder)
            (tree / "lib").mkdir()
            (tree / "lib/real").write_text("x")
            (tree / "link").symlink_to("/lib/real")
            self.assertEqual(initramfs.inside(tree, "link"), tree / "lib/real")

    def test_readelf_names_libraries(self):
        text = """      [Requesting program interpreter: /lib64/ld-linux-x86-64.so.2]
 0x0000000000000001 (NEEDED)             Shared library: [libm.so.6]
"""
        self.assertEqual(initramfs.needed_libraries(text), ("/lib64/ld-linux-x86-64.so.2", ["libm.so.6"]))


class Packages(unittest.TestCase):
    def test_the_archive_is_found_among_the_sources(self):
        text = ("'http://a.example/x/dists/bookworm/InRelease' a 0 \n"
                "'http://b.example/debian/dists/bookworm-updates/InRelease' b 0 \n")
        self.assertEqual(apt.mirror_in(text, "bookworm"), "http://b.example/debian")
        self.assertIsNone(apt.mirror_in(text, "trixie"))

    def test_kernel_packages_are_followed_through_the_metapackage(self):
        tree = {"linux-image-amd64": ["linux-image-7.2.1-amd64"],
                "linux-image-7.2.1-amd64": ["linux-base", "kmod", "linux-modules-7.2.1-amd64"],
                "linux-modules-7.2.1-amd64": ["linux-base-7.2.1-amd64"]}
        self.assertEqual(kernels.image_packages(lambda name: tree.get(name, []), "linux-image-amd64"),
                         ["linux-base-7.2.1-amd64", "linux-image-7.2.1-amd64", "linux-modules-7.2.1-amd64"])
        self.assertEqual(kernels.Kernel("sid", "amd64", "7.2.13+deb14-amd64", Path(), Path()).series, "7.2")


class Support(unittest.TestCase):
    def test_the_table_goes_between_the_markers(self):
        text = f"before\n{support.BEGIN}old\n{support.END}after\n"
        self.assertEqual(support.replace(text, "new\n"), f"before\n{support.BEGIN}new\n{support.END}after\n")
        with self.assertRaises(LabError):
            support.replace("no markers", "new\n")

    def test_one_row_says_what_all_cases_of_a_driver_saw(self):
        one = case.parse("x", Cases.GOOD)
        kernel = kernels.Kernel("sid", "amd64", "7.2.1-amd64", Path(), Path())
        doctor = {"interface": {"driver": "e1000e"}, "tiers": [{"name": "skb", "available": True},
                                                               {"name": "ring", "available": False}],
                  "hooks": [{"name": "a", "how": "tp_btf", "why_not": ""},
                            {"name": "b", "how": "-", "why_not": "not here"}]}
        outcome = guest.Outcome(console.Console(), {"doctor": doctor})
        results = [main.Result("x/sid", one, kernel, 1.0, failures, outcome, Path())
                   for failures in ([], ["something"])]
        results.append(main.Result("x/sid", one, None, 1.0, ["no network"], None, Path()))
        self.assertEqual(support.rows(results), [
            ("7.2.1-amd64", "amd64", "e1000e", "skb", "1 of 2", "b: not here", "1 of 2")])

    def test_expectations_that_do_not_hold_are_failures(self):
        one = case.parse("x", Cases.GOOD.replace("1 == 1", "after.n == 7"))
        holds = guest.Outcome(console.Console(), {"after": {"n": 7}})
        self.assertEqual(main.check(one, "sid", holds), [])
        fails = guest.Outcome(console.Console(), {"after": {"n": 8}})
        self.assertIn("after.n = 8", main.check(one, "sid", fails)[0])
        self.assertIn("after", main.check(one, "sid", guest.Outcome(console.Console(), {}))[0])


if __name__ == "__main__":
    unittest.main()
