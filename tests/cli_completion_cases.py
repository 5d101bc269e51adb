"""Cases of cli_test.py on help and completions: they are taken from the program, so that a new
command is covered without being named here."""

import os
import re
import shutil
import subprocess
import unittest

from cli_case import BINARY, HANG_S, ROOT, CliCase

__all__ = ["CompletionTest"]

COMPLETIONS = ROOT / "tools" / "completions"


class CompletionTest(CliCase):
    def setUp(self):
        super().setUp()
        # The scripts call the program by the name that was typed.
        (self.dir / "bin").mkdir()
        (self.dir / "bin" / "esker").symlink_to(BINARY)
        self.env["PATH"] = f"{self.dir / 'bin'}:{os.environ['PATH']}"

    def answers(self, *words):
        """What the program says that fits, and whether files do."""
        lines = self.esker("__complete", *words).out.splitlines()
        return [line.split("\t")[0] for line in lines if line != ":files"], ":files" in lines

    def commands(self):
        """Every command, as a tuple of its words: those within another one too."""
        found = []
        for word in self.answers("")[0]:
            page = self.esker(word, "--help").out
            found.append((word,))
            if re.search(rf"(?m)^Usage: esker \S+ COMMAND", page):
                found += [(word, inner) for inner in self.answers(word, "")[0]]
        return [words for words in found if words != ("help",)]

    def options(self, *words):
        return sorted(re.findall(r"(?m)^  (?:-\w,)?(--[a-z-]+)", self.esker(*words, "--help").out))

    def test_every_command_of_the_help_is_completed_and_has_help_with_examples_first(self):
        page = self.esker("--help").out
        listed = set(re.findall(r"(?m)^  ([a-z]+)(?:,? ?\w*) {2,}", page))
        commands = self.commands()
        self.assertGreater(len(commands), 25)
        self.assertLessEqual(listed - {"esker"}, {words[0] for words in commands})
        for words in commands:
            with self.subTest(words=words):
                text = self.esker(*words, "--help").out
                self.assertEqual(self.esker("help", *words).out, text)
                order = [text.index(word) for word in ("Examples:", "Usage:", "Common options:")]
                self.assertEqual(order, sorted(order))

    def test_every_option_of_every_command_is_completed_and_no_other(self):
        for words in [(), *self.commands()]:
            with self.subTest(words=words):
                self.assertEqual(sorted(self.answers(*words, "--")[0]), self.options(*words))

    def test_every_command_and_option_stands_in_the_manual(self):
        manual = (ROOT / "tools" / "esker.1.scd").read_text()
        known = set()
        for words in self.commands():
            self.assertRegex(manual, rf"(?<![\w-]){words[-1]}(?![\w-])", f"no {' '.join(words)}")
            known.update(self.options(*words))
            for option in self.options(*words):
                self.assertRegex(manual, rf"{option}(?![\w-])", f"no {option} of {words}")
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", manual):
            self.assertIn(option, known | {"--version"}, f"the manual invents {option}")

    def test_values_and_operands_are_completed_by_their_kind(self):
        self.create()
        self.create("chat2")
        self.assertEqual(self.answers("ls", "--sort", ""), (["age", "bytes", "tokens"], False))
        self.assertEqual(self.answers("session", "ls", "--sort", "n"), (["name"], False))
        self.assertEqual(self.answers("create", "x", "--dtype", "q"), (["q8_0", "q4_0"], False))
        self.assertEqual(self.answers("info", "chat"), (["chat", "chat2"], True))
        self.assertEqual(self.answers("info", "-s", "chat2"), (["chat2"], True))
        self.assertEqual(self.answers("info", "chat", ""), ([], False))
        self.assertEqual(self.answers("import", "chat", ""), ([], True))
        self.assertEqual(self.answers("import", "-s", "chat", ""), ([], True))
        self.assertEqual(self.answers("log", "chat", "--since", ""), ([], False))
        self.assertEqual(self.answers("ls", "--nonsense", "chat2"), (["chat2"], True))
        self.assertEqual(self.answers("nonsense", ""), ([], False))
        self.assertEqual(self.answers("help", "session", "ke"), (["keep"], False))
        self.assertEqual(self.answers(), self.answers(""))

    def test_a_store_whose_name_a_terminal_would_obey_is_not_offered(self):
        self.create()
        shutil.copytree(self.home / "chat", self.home / "bad\x1b[2Jname")
        shutil.copytree(self.home / "chat", self.home / "two\nlines")
        self.assertEqual(self.answers("info", ""), (["chat"], True))

    def bash(self, *words):
        script = ("source \"$0\"; COMP_WORDS=(esker \"$@\"); COMP_CWORD=$#; _esker;"
                  " printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "-c", script, COMPLETIONS / "esker.bash", *words],
                              env=self.env, cwd=self.dir, capture_output=True, text=True,
                              timeout=HANG_S)
        self.assertEqual(done.stderr, "")
        return [line for line in done.stdout.split("\n") if line]

    def zsh(self, *words):
        # Outside of its line editor: what the editor would be given is printed in its place.
        script = ("compdef() { }; _describe() { print -rl -- ${(P)4} };"
                  " _files() { print -rl -- $words[CURRENT]*(N) };"
                  " words=(esker \"$@\"); CURRENT=$#words; source \"$0\"")
        done = subprocess.run(["zsh", "-fc", script, COMPLETIONS / "esker.zsh", *words],
                              env=self.env, cwd=self.dir, capture_output=True, text=True,
                              timeout=HANG_S)
        self.assertEqual(done.stderr, "")
        return [line.split(":")[0] for line in done.stdout.splitlines() if line]

    def fish(self, *words):
        line = " ".join(["esker", *words])
        done = subprocess.run(["fish", "--no-config", "-c",
                               f"source {COMPLETIONS / 'esker.fish'}; complete -C '{line}'"],
                              env=self.env, cwd=self.dir, capture_output=True, text=True,
                              timeout=HANG_S)
        self.assertEqual(done.stderr, "")
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    def check_shell(self, complete):
        self.create()
        self.create("chatter")
        for words, expected in ((("ver",), ["verify"]), (("help", "st"), ["stat"]),
                                (("ls", "--so"), ["--sort"]), (("ls", "--sort", "to"), ["tokens"]),
                                (("session", "ren"), ["rename"]),
                                (("session", "ls", "chatt"), ["chatter"])):
            with self.subTest(words=words):
                self.assertEqual(complete(*words), expected)
        (self.dir / "slot.bin").touch()
        self.assertEqual(complete("import", "chat", "slo"), ["slot.bin"])
        for words in (("stat",), ("create",), ("session", "rm"), ("top",), ("report",)):
            self.assertEqual(sorted(complete(*words, "--")), self.options(*words))

    def test_bash_completes_commands_options_stores_and_files(self):
        self.check_shell(self.bash)

    def test_bash_quotes_the_name_of_a_store(self):
        self.create("my chat")
        self.assertIn("my chat", self.bash("info", "my"))  # readline quotes, since files fit too
        self.assertEqual(self.bash("stat", "--store", "my"), ["my chat"])

    @unittest.skipUnless(shutil.which("zsh"), "no zsh here")
    def test_zsh_completes_commands_options_stores_and_files(self):
        self.check_shell(self.zsh)

    @unittest.skipUnless(shutil.which("fish"), "no fish here")
    def test_fish_completes_commands_options_stores_and_files(self):
        self.check_shell(self.fish)

    def test_a_shell_without_the_program_completes_nothing_and_says_nothing(self):
        self.env["PATH"] = os.environ["PATH"]
        if shutil.which("esker") is None:
            self.assertEqual(self.bash("ver"), [])
