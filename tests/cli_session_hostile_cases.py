"""Cases of cli_test.py on sessions: names, damage, streams and kills."""

import os
import signal
import subprocess

from cli_case import BINARY, HANG_S, SESSION_VERBS, SLOT
from cli_session_case import NAME, SessionCase

__all__ = ["SessionNameTest", "SessionDamageTest", "SessionStreamTest"]

BAD_NAMES = ("x" * 65, "ä" * 33, "new\nline", "\x1b[31mred", "tab\there", b"\xff\xfe", b"half\xc3",
             b"\xed\xa0\x80")


class SessionNameTest(SessionCase):
    def test_any_text_is_a_name(self):
        self.create()
        names = ("a/b", "..", "../../up", "[a,b]", "[c]", "{}", "Grüße, 世界", "-x", "--help", "%s",
                 "*", "x" * 64, "ls", "chat")
        for name in names:
            self.esker("import", "chat", SLOT, "--assume-model", f"--session={name}")
        self.assertEqual(self.names(), sorted(names, key=os.fsencode))
        self.assertEqual([p.name for p in self.dir.iterdir() if p.name != self.other_slot.name],
                         ["home"])
        for name in names:
            with self.subTest(name=name):
                found = self.esker("session", "show", "--json", "--", "chat", name).json
                self.assertEqual(found["name"], name)
        for name in ("[a,b]", "a/b"):
            self.assertEqual(self.session("rm", "chat", name)["sessions"], [name])

    def test_a_bad_name_is_refused_and_leaves_nothing(self):
        self.create()
        self.keep()
        files = self.files()
        for name in BAD_NAMES:
            name = os.fsdecode(name) if isinstance(name, bytes) else name
            with self.subTest(name=ascii(name)):
                self.refused("import", "chat", SLOT, "--assume-model", "--session", name)
                self.refused("session", "fork", "chat", NAME, name)
                self.refused("session", "rename", "chat", NAME, name)
        self.refused("session", "fork", "chat", NAME, "")
        self.refused("session", "rename", "chat", NAME, "")
        self.assertEqual(self.names(), [NAME])
        self.assertEqual(self.files(), files)

    def test_a_session_that_is_not_there_is_exit_3_and_the_nearest_is_named(self):
        self.create()
        self.assertIn("no sessions", self.refused("session", "show", "chat", NAME, code=3))
        self.keep()
        calls = (("session", "show", "chat", "suport 17"), ("session", "rm", "chat", "suport 17"),
                 ("session", "fork", "chat", "suport 17", "x"),
                 ("session", "rename", "chat", "suport 17", "x"),
                 ("session", "keep", "chat", "suport 17"),
                 ("export", "chat", "--session", "suport 17", "--like", SLOT, "-o", "never"))
        for words in calls:
            with self.subTest(words=words):
                self.assertIn(f"did you mean \"{NAME}\"?", self.refused(*words, code=3))
        said = self.refused("session", "show", "chat", "something else", code=3)
        self.assertNotIn("did you mean", said)
        self.assertIn("session ls", said)
        self.assertFalse((self.dir / "never").exists())

    def test_a_store_that_is_missing_is_exit_3(self):
        for verb, words in (("ls", ()), ("show", ("a",)), ("rm", ("a",)), ("fork", ("a", "b")),
                            ("rename", ("a", "b")), ("keep", ("a",))):
            self.assertIn("nowhere", self.refused("session", verb, "nowhere", *words, code=3))

    def test_session_commands_are_found_and_explained(self):
        self.assertIn("did you mean `esker session rename`?", self.refused("session", "renam"))
        self.assertIn("fork", self.refused("session"))
        self.refused("session", "-s", "chat")
        for words in (("show", "chat"), ("fork", "chat", "a"), ("rename", "chat", "a"),
                      ("keep", "chat"), ("show", "chat", "a", "b"), ("ls", "a", "b"),
                      ("fork", "chat", "a", "b", "c"), ("ls", "chat", "--expired")):
            with self.subTest(words=words):
                self.assertIn(f"esker session {words[0]} --help`)",
                              self.refused("session", *words))
        for verb in SESSION_VERBS:
            text = self.esker("session", verb, "--help").out
            self.assertIn(f"  esker session {verb} ", text)
            self.assertEqual(self.esker("help", "session", verb).out, text)
            self.assertRegex(self.esker("session", "--help").out, rf"(?m)^  {verb} ")

    def test_operands_that_do_not_fit_are_answered_alike_with_what_to_give(self):
        lists = "; `esker ls` lists the stores, `esker session ls STORE` the sessions of one (see"
        env = {"ESKER_STORE": "here"}
        for verb, names, most in (("show", "NAME", 1), ("keep", "NAME", 1),
                                  ("fork", "NAME NEW", 2), ("rename", "NAME NEW", 2),
                                  ("rm", "NAME... or --expired", None)):
            with self.subTest(verb=verb):
                self.assertIn(f"expected STORE {names}, found nothing{lists}",
                              self.refused("session", verb))
                self.assertIn(f"expected STORE {names}, found 1 operand; `esker session ls chat` "
                              "lists its sessions (see", self.refused("session", verb, "chat"))
                self.assertIn(f"expected [STORE] {names}, found nothing; `esker session ls here` ",
                              self.refused("session", verb, env=env))
                self.assertIn(f"expected {names} beside -s, found nothing; `esker session ls x` ",
                              self.refused("session", verb, "-s", "x"))
                if most is not None:
                    self.assertIn(f"expected STORE {names}, found {most + 2} operands; ",
                                  self.refused("session", verb, *"abcd"[:most + 2]))
        self.assertIn("expected STORE, found 2 operands; ",
                      self.refused("session", "rm", "chat", "one", "--expired"))


class SessionDamageTest(SessionCase):
    def setUp(self):
        super().setUp()
        self.create()
        self.keep("good")
        before = self.files()
        self.keep("bad", self.other_slot)
        self.own = [p for p in self.files() - before if "session" in str(p)]
        self.assertTrue(self.own)

    def damage(self, change):
        for file in self.own:
            file.write_bytes(change(file.read_bytes()))

    def test_a_damaged_session_is_named_and_hides_no_other(self):
        changes = {"cut": lambda data: data[:len(data) // 2], "empty": lambda data: b"",
                   "garbage": lambda data: b"\xa5" * len(data),
                   "a bit": lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:]}
        whole = {file: file.read_bytes() for file in self.own}
        for words, change in changes.items():
            with self.subTest(words):
                for file, data in whole.items():
                    file.write_bytes(data)
                self.damage(change)
                answer = self.esker("session", "ls", "chat")
                self.assertRegex(answer.out, r"(?m)^good +188 +188 ")
                self.assertRegex(answer.out, r"(?m)^bad .*damaged: ")
                self.assertIn("\"bad\" is damaged", answer.err)
                good, bad = self.session("ls", "chat")["sessions"]
                self.assertEqual((good["name"], good["damage"]), ("good", None))
                self.assertEqual((bad["name"], bad["tokens"]), ("bad", None))
                self.assertTrue(bad["damage"])

    def test_a_damaged_session_can_be_looked_at_and_removed_and_nothing_else(self):
        self.damage(lambda data: b"\xa5" * len(data))
        self.assertIn("damaged: ", self.esker("session", "show", "chat", "bad", code=1).out)
        self.assertTrue(self.show("bad", code=1)["damage"])
        self.refused("session", "fork", "chat", "bad", "new")
        self.refused("session", "keep", "chat", "bad")
        self.refused("export", "chat", "--session", "bad", "--like", SLOT, "-o", "never")
        self.assertIn("damaged", self.refused("import", "chat", SLOT, "--assume-model", "--session",
                                              "bad"))
        self.assertEqual(self.session("rm", "chat", "bad")["sessions"], ["bad"])
        self.assertEqual(self.names(), ["good"])
        self.assertEqual(self.show("good")["reusable_tokens"], 188)

    def test_a_stranger_among_the_files_of_sessions_is_no_session(self):
        folder = self.own[0].parent
        (folder / "notes.txt").write_text("mine")
        (folder / "directory").mkdir()
        (folder / "loop").symlink_to("loop")
        os.mkfifo(folder / "fifo")
        (folder / "misspelt name.session").write_bytes(self.own[0].read_bytes())
        found = {s["name"]: s["damage"] for s in self.session("ls", "chat")["sessions"]}
        self.assertEqual([name for name, damage in found.items() if not damage], ["bad", "good"])
        self.assertEqual(self.show("good")["reusable_tokens"], 188)
        for name in [name for name, damage in found.items() if damage]:
            self.session("rm", "chat", name)
        self.assertEqual(self.names(), ["bad", "good"])
        self.assertTrue((folder / "notes.txt").exists())


class SessionStreamTest(SessionCase):
    def test_a_pipe_that_is_closed_early_is_no_complaint(self):
        self.create()
        self.keep()
        for words in (("ls", "chat"), ("ls", "chat", "--json"), ("show", "chat", NAME),
                      ("--help",)):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([BINARY, "session", *words], env=self.env, stdout=writer,
                                  stderr=subprocess.PIPE, timeout=HANG_S)
            os.close(writer)
            self.assertEqual((done.stderr, done.returncode), (b"", 141))

    def test_a_result_that_cannot_be_written_is_exit_2(self):
        self.create()
        self.keep()
        for words in (("ls", "chat"), ("show", "chat", NAME, "--json")):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([BINARY, "session", *words], env=self.env, stdout=full,
                                      stderr=subprocess.PIPE, timeout=HANG_S)
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"No space left", done.stderr)

    def test_errors_under_json_are_one_object_on_stderr(self):
        self.create()
        for words, code in ((("show", "chat", "x"), 3), (("lst",), 2), (("show",), 2), ((), 2)):
            answer = self.esker("session", *words, "--json", code=code)
            self.assertEqual(answer.out, "")
            self.assertRegex(answer.err, rf'"exit": ?{code}')
            self.assertIn("esker.error/1", answer.err)

    def test_no_escape_sequence_of_a_name_or_note_reaches_the_terminal(self):
        self.create()
        c1 = "\x9b31m"  # the introducer as one letter, which some terminals obey
        done = subprocess.run([BINARY, "import", "chat", SLOT, "--assume-model", "--session",
                               f"a{c1}", "--set", f"k={c1}"], env=self.env, capture_output=True,
                              timeout=HANG_S)
        self.assertIn(done.returncode, (0, 2))
        for words in (("session", "ls", "chat"), ("ls", "chat")):
            self.assertNotIn("\x9b", self.esker(*words).out)

    def test_no_letter_that_turns_the_direction_of_writing_reaches_the_terminal(self):
        self.create()
        turns = [chr(code) for code in (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F),
                                        *range(0x2066, 0x206A))]
        for turn in turns:
            with self.subTest(turn=ascii(turn)):
                name = f"a{turn}b\u2010\u2065"
                self.keep(name, SLOT, "--set", f"k{turn}=v{turn}")
                shown = "a?b\u2010\u2065"
                for words in (("session", "ls", "chat"), ("session", "show", "chat", name),
                              ("ls", "chat"), ("session", "rm", "chat", name, "-n")):
                    out = self.esker(*words).out
                    self.assertIn(shown, out)
                    self.assertNotIn(turn, out)
                self.assertIn("k?=v?", self.esker("session", "show", "chat", name).out)
                self.assertIn("a?", self.refused("session", "show", "chat", f"a{turn}", code=3))
                self.session("rm", "chat", name)

    def test_colour_marks_what_is_whole(self):
        self.create()
        self.keep()
        self.assertIn("\x1b[32m", self.esker("session", "ls", "chat", "--color", "always").out)
        self.assertNotIn("\x1b", self.esker("session", "ls", "chat").out)

    def test_a_killed_import_leaves_sessions_that_can_be_used(self):
        self.create()
        self.keep()
        for _ in range(10):
            process = subprocess.Popen([BINARY, "import", "chat", self.other_slot, "--assume-model",
                                        "--session", NAME], env=self.env,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            process.send_signal(signal.SIGKILL)
            process.wait(HANG_S)
            found = self.show()
            self.assertEqual((found["damage"], found["tokens"], found["reusable_tokens"]),
                             (None, 188, 188))
        self.assertEqual(self.keep()["stored_tokens"], 188)
