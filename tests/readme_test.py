#!/usr/bin/env python3
"""Compiles and runs the C++ example of README.md, and checks that what README names exists.

    tests/readme_test.py BUILD_DIR     the release build, whose libesker the example is linked with
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
build_dir = ROOT / "build"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


class Example(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="esker-readme-")
        cls.source = pathlib.Path(cls.folder.name) / "example.cpp"
        cls.program = pathlib.Path(cls.folder.name) / "example"
        cls.source.write_text(blocks("cpp")[0])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def compile(self):
        libraries = sorted(build_dir.glob("src/libesker.*"))
        libraries = [str(path) for path in libraries if path.suffix in (".a", ".so")]
        self.assertTrue(libraries, f"no libesker in {build_dir}/src: build it first")
        done = subprocess.run(
            ["c++", "-std=c++20", *WARNINGS, f"-I{ROOT / 'include'}", str(self.source),
             libraries[0], f"-Wl,-rpath,{build_dir / 'src'}", "-lxxhash", "-llz4",
             "-lzstd", "-largon2", "-o", str(self.program)],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def run_it(self):
        done = subprocess.run([str(self.program)], capture_output=True, text=True, check=False,
                              cwd=self.folder.name)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_it_has_about_twenty_lines(self):
        lines = [line for line in blocks("cpp")[0].splitlines() if line.strip()]
        self.assertLessEqual(len(lines), 25)

    def test_it_compiles_runs_and_finds_its_tokens_the_second_time(self):
        self.compile()
        first, second = self.run_it(), self.run_it()
        for number, output in ((0, first), (100, second)):
            said = f"{number} of 100 tokens are stored"
            self.assertIn(said, output)
        self.assertRegex(README, r'"0 of 100" and then "100 of 100 tokens are stored"')
        for output in (first, second):
            sizes = [int(n) for n in re.findall(r"(\d+) bytes in place", output)]
            self.assertEqual(sum(sizes), 100 * 8 * 128 * 2)  # tokens, heads, head, f16


class Names(unittest.TestCase):
    def test_the_commands_exist(self):
        for command in set(re.findall(r"^(tools/[\w-]+)", "\n".join(blocks("sh")), re.M)):
            path = ROOT / command
            self.assertTrue(path.is_file() and path.stat().st_mode & 0o100, command)

    def test_the_links_lead_to_files(self):
        links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
        self.assertGreater(len(links), 4)
        for link in links:
            self.assertTrue((ROOT / link).is_file(), link)

    def test_the_verbs_are_those_of_the_manual(self):
        manual = (ROOT / "tools" / "esker.1.scd").read_text()
        verbs = set(re.findall(r"\besker ([a-z]+) (?:chat|STORE)", README))
        self.assertGreater(len(verbs), 6)
        for verb in verbs:
            self.assertRegex(manual, rf"(?m)^\*{verb}\* ", verb)

    def test_its_options_are_those_of_the_manual(self):
        manual = (ROOT / "tools" / "esker.1.scd").read_text()
        # A line may name other programs too, whose options are not ours.
        lines = re.sub(r"`(systemctl|ninja) [^`\n]*`", "", README)
        lines = "\n".join(line for line in lines.splitlines() if "esker " in line)
        for option in set(re.findall(r"(?<!\w)--[a-z-]+", lines)):
            self.assertIn(f"*{option}*", manual)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        build_dir = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
