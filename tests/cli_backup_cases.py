"""Cases of cli_test.py on snapshots: comparing them, rewriting them, backing chats up."""

from cli_case import SLOT, SLOT_TOKENS
from cli_snapshot_case import PATH_TOKENS, SMALL, TOKENS, SnapshotCase

__all__ = ["DiffTest", "RewriteTest", "BackupTest"]


class DiffTest(SnapshotCase):
    def test_equal_stores_and_snapshots_are_equal_in_any_mix(self):
        self.keep()
        self.export()
        self.bring("copy")
        repacked = self.dir / "repacked.esnap"
        self.esker("repack", self.file, "--codec", "zstd", "-o", repacked)
        sides = ("chat", "copy", self.file, repacked)
        for a in sides:
            for b in sides:
                with self.subTest(a=a, b=b):
                    found = self.diff(a, b)
                    self.assertEqual((found["equal"], found["tokens_in_both"]), (True, PATH_TOKENS))

    def test_tokens_that_one_side_lacks_are_named_once(self):
        self.create("less")
        self.load("less", SLOT)
        text = self.esker("diff", "chat", "less", code=1).out
        self.assertRegex(text, r"(?m)^- [0-9a-f]{12}: tokens 100 to 188 only in chat$")
        self.assertRegex(text, r"(?m)^188 tokens in both, 88 only in chat, 0 only in less: no un")
        found = self.diff("less", "chat", code=1)
        self.assertEqual((found["tokens_only_in_a"], found["tokens_only_in_b"]), (0, 88))
        self.assertEqual(found["unequal_rows"], 0)
        self.create("none")
        self.assertEqual(self.diff("chat", "none", code=1)["tokens_only_in_a"], PATH_TOKENS)
        self.assertTrue(self.diff("none", "none")["equal"])

    def test_rows_that_differ_are_named_by_layer_plane_and_token(self):
        self.create("other")
        self.load("other", self.unequal_slot())
        self.load("other", self.other_slot)
        found = self.diff("chat", "other", code=1)
        self.assertEqual((found["unequal_rows"], found["tokens_in_both"]), (1, PATH_TOKENS))
        (unequal,) = found["unequal"]
        self.assertEqual((unequal["layer"], unequal["plane"], unequal["first_token"]),
                         (1, "value", 187))
        self.assertRegex(self.esker("diff", "chat", "other", code=1).out,
                         r"(?m)^! [0-9a-f]{12}: layer 1 value: 1 unequal row, the first is token "
                         r"187")

    def test_sessions_and_models_are_compared_too(self):
        self.export()
        self.bring("copy")
        self.keep("here")
        self.keep("both")
        self.keep("both", self.other_slot, store="copy")
        self.keep("there", store="copy")
        found = self.diff("chat", "copy", code=1)
        self.assertEqual((found["sessions_only_in_a"], found["sessions_only_in_b"],
                          found["unequal_sessions"]), (["here"], ["there"], ["both"]))
        self.esker("create", "other", "--like", SLOT, "--model", "name=tiny2", *SMALL)
        self.assertIn("tiny2", self.diff("chat", "other", code=1)["model"])

    def test_it_needs_two_operands_that_exist(self):
        self.export()
        for words in ((), ("chat",), ("chat", "chat", "chat")):
            self.refused("diff", *words)
        self.refused("diff", "chat", "nothing.esnap", code=3)
        self.assertTrue(self.diff("-s", "chat", self.file)["equal"])
        self.refused("diff", "chat", "-", stdin=self.file.read_bytes())


class RewriteTest(SnapshotCase):
    def setUp(self):
        super().setUp()
        self.keep("chat a")
        self.keep("chat b", self.other_slot)
        self.export()
        self.new = self.dir / "new.esnap"

    def test_split_takes_sessions_out_and_merge_puts_them_together(self):
        parts = [self.dir / f"{name}.esnap" for name in "ab"]
        for name, part in zip(("chat a", "chat b"), parts):
            done = self.document("split", self.file, "--session", name, "-o", part)
            self.assertEqual((done["sessions"], done["tokens"]), (1, SLOT_TOKENS))
            self.assertEqual([s["name"] for s in self.held(part)["sessions"]], [name])
        done = self.document("merge", *parts, "-o", self.new)
        self.assertEqual((done["sessions"], done["tokens"]), (2, TOKENS))
        self.assertTrue(self.diff(self.new, "chat")["equal"])
        self.assertTrue(self.document("verify", self.new)["ok"])

    def test_repack_changes_the_codec_and_nothing_else(self):
        for codec in ("raw", "zstd", "lz4"):
            self.document("repack", self.file, "--codec", codec, "-o", self.new, "-f")
            self.assertTrue(self.diff(self.new, self.file)["equal"])
        text = self.esker("repack", self.file, "-o", self.new, "-f").out
        self.assertIn("repacked 2 paths, 2 sessions", text)
        self.document("repack", self.file, "--lossy", "q8", "-o", self.new, "-f")
        self.assertEqual(self.held(self.new)["lossy"], "q8")
        self.refused("repack", self.new, "--lossy", "q4", "-o", self.dir / "twice")

    def test_they_write_to_pipes_and_read_files_put_on_standard_input(self):
        self.shell(f"$ESKER repack - --codec zstd -o - < {self.file} | $ESKER import --create"
                   f" {' '.join(SMALL)} copy -")
        self.assertTrue(self.diff("chat", "copy")["equal"])
        said = self.shell(f"cat {self.file} | $ESKER repack - -o new.esnap", code=2).stderr
        self.assertIn(b"stream", said)
        self.assertFalse(self.new.exists())

    def test_what_does_not_fit_is_refused_and_leaves_nothing(self):
        said = self.refused("split", self.file, "--session", "chatb", "-o", self.new, code=3)
        self.assertIn("did you mean \"chat b\"?", said)
        self.assertIn("esker export chat", self.refused("merge", "chat", self.file, "-o", self.new))
        self.refused("merge", self.file, "-o", self.new)
        self.refused("split", self.file, "-o", self.new)
        self.refused("split", self.file, "--session", "", "-o", self.new)
        self.refused("repack", self.file)
        self.refused("repack", self.file, self.file, "-o", self.new)
        self.refused("repack", SLOT, "-o", self.new)
        self.refused("repack", self.dir / "nowhere", "-o", self.new)
        self.assertIn("-f", self.refused("repack", self.file, "-o", self.file))
        self.esker("create", "other", "--like", SLOT, "--model", "name=tiny2", *SMALL)
        other = self.dir / "other.esnap"
        self.export(file=other, store="other")
        self.refused("merge", self.file, other, "-o", self.new, code=5)
        self.assertFalse(self.new.exists())


class BackupTest(SnapshotCase):
    def setUp(self):
        super().setUp()
        self.keep("one", SLOT, "--set", "user=7")
        self.keep("two", self.other_slot)
        self.attach("sampler", "state of the sampler", name="one")

    def test_chats_come_back_into_an_empty_home_and_go_on(self):
        before = [self.session("show", "chat", name) for name in ("one", "two")]
        text = self.esker("backup", "chat", "-o", self.file).out
        self.assertIn(f"backed up 2 paths, 2 sessions, {TOKENS} tokens", text)
        self.env["ESKER_HOME"] = str(self.dir / "empty")
        self.assertEqual(self.document("ls")["stores"], [])
        self.esker("restore", "chat", self.file, *SMALL)
        for old, name in zip(before, ("one", "two")):
            new = self.session("show", "chat", name)
            for field in ("tokens", "reusable_tokens", "metadata", "attachments"):
                self.assertEqual(new[field], old[field], field)
        for name, slot in (("one", SLOT), ("two", self.other_slot)):
            self.esker("export", "chat", "--session", name, "--like", SLOT, "-o", "back", "-f")
            self.assertEqual((self.dir / "back").read_bytes(), slot.read_bytes())
        self.assert_same_rows("chat")
        again = self.document("import", "chat", self.other_slot, "--assume-model", "--session",
                              "one")
        self.assertEqual((again["common_tokens"], again["is_new_session"]), (100, False))
        self.assertTrue(self.document("verify", "chat")["ok"])

    def test_every_store_of_the_home_goes_into_a_file_of_its_own(self):
        self.create("second")
        self.keep("three", store="second")
        self.create("bare")
        place = self.dir / "backups"
        done = self.document("backup", "--all", place)
        self.assertEqual([entry["store"] for entry in done["stores"]], ["bare", "chat", "second"])
        self.assertEqual(sorted(file.name for file in place.iterdir()),
                         ["chat.esnap", "second.esnap"])
        self.assertIn("-f", self.esker("backup", "--all", place, code=2).err)
        self.document("backup", "--all", place, "-f")
        self.env["ESKER_HOME"] = str(self.dir / "empty")
        for name in ("chat", "second"):
            self.esker("restore", name, place / f"{name}.esnap", *SMALL)
        self.assertEqual(self.session("show", "second", "three")["reusable_tokens"], 188)

    def test_the_file_is_named_after_the_store_when_it_has_no_other_name(self):
        self.esker("backup", "chat")
        self.assertTrue(self.document("verify", "chat.esnap")["ok"])
        self.assertIn("-f", self.refused("backup", "chat"))
        self.assertEqual(self.shell("$ESKER backup chat -o - | $ESKER verify -").returncode, 0)

    def test_names_of_tenants_are_told_since_the_file_does_not(self):
        self.assertNotIn("namespace", self.esker("backup", "chat", "-o", self.file).err)
        self.keep("theirs", SLOT, "--namespace", "tenant-of-ours")
        self.keep("ours", SLOT, "--namespace", "lora=fish")
        answer = self.esker("backup", "chat", "-o", self.file, "-f")
        self.assertIn("--namespace for each: tenant-of-ours\n", answer.err)
        self.assertNotIn(b"tenant-of-ours", self.file.read_bytes())
        self.env["ESKER_HOME"] = str(self.dir / "empty")
        self.esker("restore", "chat", self.file, "--namespace", "tenant-of-ours", *SMALL)
        self.assertEqual(self.session("show", "chat", "theirs")["reusable_tokens"], 188)

    def test_without_sessions_there_is_nothing_to_back_up(self):
        self.create("bare")
        self.assertIn("no sessions", self.esker("backup", "bare", "-o", self.file, code=1).err)
        self.assertFalse(self.file.exists())
        self.refused("backup", "chat", "--all", self.dir)
        self.refused("backup", "--all", self.dir, "-o", self.file)
        self.refused("backup")

    def test_a_damaged_chat_is_named_and_the_others_are_saved(self):
        sessions = self.home / "chat" / "sessions"
        whole = {path: path.read_bytes() for path in sessions.rglob("*") if path.is_file()}
        broken = [path for path, data in whole.items() if b"two" in data]
        self.assertTrue(broken)
        for path in broken:
            path.write_bytes(whole[path][:-1] + bytes([whole[path][-1] ^ 1]))
        answer = self.esker("backup", "chat", "-o", self.file, code=1)
        self.assertIn("two", answer.err)
        self.assertEqual([s["name"] for s in self.held()["sessions"]], ["one"])

    def test_what_was_evicted_of_a_chat_is_simply_not_in_the_backup(self):
        self.esker("prune", "chat", "--to", "0", "-y")
        self.assertEqual(self.document("backup", "chat", "-o", self.file)["tokens"], 0)
        self.assertEqual([(s["tokens"], s["stored_tokens"]) for s in self.held()["sessions"]],
                         [(188, 0), (188, 0)])
        self.env["ESKER_HOME"] = str(self.dir / "empty")
        self.esker("restore", "chat", self.file, *SMALL)
        found = self.session("show", "chat", "one")
        self.assertEqual((found["tokens"], found["reusable_tokens"]), (188, 0))
