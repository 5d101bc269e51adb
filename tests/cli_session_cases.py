"""Cases of cli_test.py on sessions: looking, importing, changing."""

import struct
import subprocess
import time

from cli_case import BINARY, HANG_S, SLOT, SLOT_TOKENS, slot_ids
from cli_session_case import NAME, SessionCase

__all__ = ["SessionLookTest", "SessionImportTest", "SessionChangeTest"]


class SessionLookTest(SessionCase):
    def test_a_store_without_sessions_lists_none(self):
        self.create()
        self.assertEqual(self.esker("session", "ls", "chat").out, "chat: 0 sessions\n")
        self.assertEqual(self.session("ls", "chat")["sessions"], [])

    def test_ls_shows_reusable_and_total_tokens_size_use_and_note(self):
        self.create()
        self.keep("plain")
        self.keep(NAME, self.other_slot, "--set", "user=7", "--set", "topic=KV")
        text = self.esker("session", "ls", "chat").out
        self.assertRegex(text, rf"(?m)^{NAME} +188 +188 +94.0 KiB +(just now|\d+ s ago) +"
                               r"topic=KV user=7$")
        self.assertRegex(text, r"(?m)^plain +188 +188 +94.0 KiB +(just now|\d+ s ago) *$")
        self.assertNotIn("KEPT", text)
        self.assertIn(str(SLOT_TOKENS * 512), self.esker("session", "ls", "chat", "--bytes").out)

    def test_ls_sorts_by_use_name_and_tokens(self):
        self.create()
        short = self.dir / "short.slot"
        self.keep("b")
        self.esker("export", "chat", "--session", "b", "--first", 64, "--like", SLOT, "-o", short)
        self.keep("a", short)
        self.keep("c", short)
        self.keep("b", self.other_slot)
        for order, expected in (("name", "abc"), ("used", "bca"), ("tokens", "bac")):
            found = self.session("ls", "chat", "--sort", order)["sessions"]
            self.assertEqual("".join(s["name"] for s in found), expected, order)
        self.refused("session", "ls", "chat", "--sort", "age")

    def test_show_tells_everything(self):
        self.create()
        self.keep(NAME, SLOT, "--set", "user=7", "--ttl", "7d", "--priority", "-3", "--namespace",
                  "tenant")
        text = self.esker("session", "show", "chat", NAME).out
        for line in (rf"session +{NAME}", r"tokens +188 of 188 tokens are reusable \(100 %\)",
                     r"kept +no\b.*", r"namespace +tenant", r"priority +-3", r"lives +7d after.*",
                     r"note +user=7", r"created +\d{4}-\d\d-\d\dT.*", r"path +[0-9a-f]{12}"):
            self.assertRegex(text, rf"(?m)^{line}$")
        found = self.show()
        for field, value in (("tokens", 188), ("reusable_tokens", 188), ("kept", False),
                             ("kept_tokens", 0), ("priority", -3), ("damage", None),
                             ("time_to_live_s", 7 * 86400), ("metadata", {"user": "7"}),
                             ("attachments", []), ("expired", False), ("store", "chat"),
                             ("namespace_hex", b"tenant".hex()), ("reusable_bytes", 188 * 512)):
            self.assertEqual(found[field], value, field)
        self.assertEqual(found["path"], self.paths()[0]["path"])
        self.assertRegex(found["last_used"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def test_show_tells_which_engine_state_can_be_used(self):
        self.create()
        self.keep()
        self.attach("sampler", "x" * 2000)
        entry = {"label": "sampler", "position": 188, "bytes": 2000, "available": True,
                 "damage": None}
        self.assertEqual(self.show()["attachments"], [entry])
        self.assertRegex(self.esker("session", "show", "chat", NAME).out,
                         r"(?m)^sampler +188 +2.0 KiB +yes$")
        self.esker("session", "fork", "chat", NAME, "branch")
        self.assertEqual(self.show("branch")["attachments"], [entry])
        self.esker("evict", "chat", "--to", "0")
        self.assertEqual(self.show()["attachments"], [{**entry, "available": False}])
        self.assertRegex(self.esker("session", "show", "chat", NAME).out,
                         r"(?m)^sampler +188 +2.0 KiB +no$")

    def test_engine_state_that_is_damaged_is_named_beside_a_good_session(self):
        self.create()
        self.keep()
        self.attach("sampler", "x" * 2000)
        (file,) = [f for f in self.files() if b"x" * 2000 in f.read_bytes()]
        whole = file.read_bytes()
        for data in (whole[:-1], b"\xa5" * len(whole), b"", whole[:40] + b"\xff" + whole[41:]):
            file.write_bytes(data)
            found = self.show()
            self.assertEqual((found["damage"], found["reusable_tokens"]), (None, 188))
            (state,) = found["attachments"]
            self.assertEqual((state["label"], state["available"]), ("sampler", False))
            self.assertIn(file.name, state["damage"])
            self.assertRegex(self.esker("session", "show", "chat", NAME).out,
                             r"(?m)^sampler .* damaged: ")

    def test_ls_of_a_store_names_the_sessions_of_a_path(self):
        self.filled()
        self.assertNotIn("SESSIONS", self.esker("ls", "chat").out)
        self.assertEqual([p["sessions"] for p in self.paths()], [[], []])
        path = self.keep("one")["path"]
        self.keep("two")
        text = self.esker("ls", "chat").out
        self.assertRegex(text, rf"(?m)^{path[:12]} .* one, two$")
        self.assertEqual({p["path"]: sorted(p["sessions"]) for p in self.paths()}[path],
                         ["one", "two"])

    def test_the_store_may_come_from_s_or_the_environment(self):
        self.create()
        self.keep("chat")  # a session may be called as the store is
        env = {"ESKER_STORE": "chat"}
        for words, more in ((("-s", "chat"), {}), ((), {"env": env})):
            self.assertEqual(len(self.session("ls", *words, **more)["sessions"]), 1)
            self.assertEqual(self.session("show", *words, "chat", **more)["tokens"], 188)
            self.session("fork", *words, "chat", "other", **more)
            self.session("rename", *words, "other", "third", **more)
            self.session("keep", *words, "third", **more)
            self.assertEqual(self.session("rm", *words, "third", **more)["sessions"], ["third"])
        self.assertEqual(self.session("show", "chat", "chat", env=env)["tokens"], 188)
        self.refused("session", "show", "-s", "chat", "chat", "chat")

    def test_looking_needs_no_seat(self):
        self.create("chat", "--seats", 1)
        self.keep()
        holder = self.hold("chat")
        self.assertEqual(self.session("ls", "chat")["sessions"][0]["reusable_tokens"], 188)
        self.assertEqual(self.show()["reusable_tokens"], 188)
        for words in (("rm", "chat", NAME), ("fork", "chat", NAME, "x"), ("keep", "chat", NAME),
                      ("rename", "chat", NAME, "x")):
            self.assertIn(str(holder.pid), self.refused("session", *words, code=4))


class SessionImportTest(SessionCase):
    def test_a_file_becomes_a_session_and_says_so(self):
        self.create()
        text = self.esker("import", "chat", SLOT, "--assume-model", "--session", NAME).out
        self.assertIn(f"{NAME} (new): 188 of 188 tokens are reusable", text)
        again = self.keep()
        self.assertEqual((again["new_tokens"], again["new_blocks"]), (0, 0))
        self.assertEqual((again["is_new_session"], again["common_tokens"]), (False, 188))
        self.assertEqual(again["session"]["name"], NAME)
        self.assertEqual(self.document("stat", "chat")["blocks_ready"], 6)

    def test_a_session_goes_on_behind_what_it_shares_with_the_file(self):
        self.create()
        self.keep()
        answer = self.keep(NAME, self.other_slot)
        self.assertEqual((answer["is_new_session"], answer["common_tokens"]), (False, 100))
        self.assertEqual((answer["stored_tokens"], answer["new_blocks"]), (188, 3))
        self.assertEqual(self.names(), [NAME])
        self.assertEqual(self.show()["reusable_tokens"], 188)
        self.esker("export", "chat", "--session", NAME, "--like", SLOT, "-o", "back.slot")
        self.assertEqual((self.dir / "back.slot").read_bytes(), self.other_slot.read_bytes())
        self.assertTrue(self.document("verify", "chat")["ok"])

    def test_a_shorter_file_cuts_the_session(self):
        self.create()
        self.keep()
        self.esker("export", "chat", "--session", NAME, "--first", 70, "--like", SLOT, "-o", "cut")
        answer = self.keep(NAME, self.dir / "cut")
        self.assertEqual((answer["tokens"], answer["common_tokens"], answer["new_tokens"]),
                         (70, 70, 0))
        found = self.show()
        self.assertEqual((found["tokens"], found["reusable_tokens"]), (70, 70))

    def test_what_was_evicted_is_not_reusable_until_it_is_imported_again(self):
        self.create()
        self.keep()
        self.esker("evict", "chat", "--to", "0")
        found = self.show()
        self.assertEqual((found["tokens"], found["reusable_tokens"], found["path"]),
                         (188, 0, None))
        self.assertIn("0 of 188", self.esker("session", "show", "chat", NAME).out)
        self.assertEqual(self.keep()["new_tokens"], 188)
        self.assertEqual(self.show()["reusable_tokens"], 188)

    def test_a_store_that_is_full_holds_the_beginning_of_a_session(self):
        self.esker("create", "chat", "--like", SLOT, "--model", "name=tiny", "--capacity", "300K",
                   "--segment-size", "64K")
        answer = self.esker("import", "chat", SLOT, "--assume-model", "--session", NAME)
        self.assertIn("full: only the first 128 of 188", answer.err)
        found = self.show()
        self.assertEqual((found["tokens"], found["reusable_tokens"]), (188, 128))
        self.esker("export", "chat", "--session", NAME, "--like", SLOT, "-o", "part.slot")
        self.assertEqual(slot_ids((self.dir / "part.slot").read_bytes()), self.ids[:128])

    def test_notes_life_and_priority_can_be_changed(self):
        self.create()
        self.keep(NAME, SLOT, "--set", "a=1", "--set", "b=x=y", "--set", "gone=")
        self.assertEqual(self.show()["metadata"], {"a": "1", "b": "x=y"})
        self.keep(NAME, SLOT, "--set", "a=", "--set", "c=3", "--ttl", "2w", "--priority", 5)
        found = self.show()
        self.assertEqual(found["metadata"], {"b": "x=y", "c": "3"})
        self.assertEqual((found["time_to_live_s"], found["priority"]), (14 * 86400, 5))
        self.keep(NAME, SLOT, "--ttl", "never")
        self.assertEqual(self.show()["time_to_live_s"], 0)
        self.assertEqual(self.show()["metadata"], {"b": "x=y", "c": "3"})

    def test_bad_notes_are_refused_and_no_session_is_left(self):
        self.create()
        for words in (("--set", "novalue"), ("--set", "=1"), ("--set", "a=1", "--set", "a=2"),
                      ("--ttl", "7"), ("--ttl", "soon"), ("--priority", "high"),
                      ("--priority", "99999999999"), ("--set", "k=\x1b[31m"), ("--set", "\n=1"),
                      ("--set", "k=" + "x" * 17000)):
            with self.subTest(words=[word[:20] for word in words]):
                self.refused("import", "chat", SLOT, "--assume-model", "--session", NAME, *words)
        self.assertEqual(self.names(), [])

    def test_options_of_a_session_need_one(self):
        self.create()
        for words in (("--set", "a=1"), ("--ttl", "7d"), ("--priority", "1"), ("--session", "")):
            self.assertIn("--session", self.refused("import", "chat", SLOT, "--assume-model",
                                                    *words))
        self.assertEqual(self.paths(), [])

    def test_a_file_that_is_refused_leaves_the_session_as_it_was(self):
        self.create()
        self.keep()
        before = self.show()
        cut = self.dir / "cut.slot"
        cut.write_bytes(self.other_slot.read_bytes()[:-1])
        self.refused("import", "chat", cut, "--assume-model", "--session", NAME)
        self.refused("import", "chat", SLOT, "--session", NAME, code=5)
        self.refused("import", "chat", cut, "--assume-model", "--session", "another")
        self.assertEqual(self.show(), before)
        self.assertEqual(self.names(), [NAME])

    def test_a_session_stays_in_its_namespace(self):
        self.create()
        self.keep(NAME, SLOT, "--namespace", "a")
        self.keep(NAME, self.other_slot)
        self.keep(NAME, SLOT, "--namespace", "a")
        self.assertIn("namespace", self.refused("import", "chat", SLOT, "--assume-model",
                                                "--session", NAME, "--namespace", "b"))
        self.assertEqual(self.matched(self.ids, "chat", "--namespace", "a"), SLOT_TOKENS)
        self.assertEqual(self.matched(self.ids), 0)

    def test_many_imports_of_one_session_at_once_leave_it_whole(self):
        self.create()
        self.import_at_once()  # one of them makes it
        self.import_at_once()

    def import_at_once(self):
        slots = (SLOT, self.other_slot)
        running = [subprocess.Popen([BINARY, "import", "chat", slots[i % 2], "--assume-model",
                                     "--session", NAME], env=self.env, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE) for i in range(6)]
        codes = []
        for process in running:
            said = process.communicate(timeout=HANG_S)
            codes.append(process.returncode)
            self.assertIn(process.returncode, (0, 4), said)
        self.assertIn(0, codes)
        found = self.show()
        self.assertEqual((found["tokens"], found["reusable_tokens"]), (188, 188))
        self.esker("export", "chat", "--session", NAME, "--like", SLOT, "-o", "back.slot", "-f")
        self.assertIn((self.dir / "back.slot").read_bytes(), [s.read_bytes() for s in slots])
        self.assertTrue(self.document("verify", "chat")["ok"])


class SessionChangeTest(SessionCase):
    def test_rm_forgets_sessions_and_wipes_what_only_they_use(self):
        self.create()
        self.keep()
        self.keep("other", self.other_slot)
        own = struct.pack("<32i", *slot_ids(self.other_slot.read_bytes())[128:160])
        segment = self.home / "chat" / "segments" / "00000"
        self.assertIn(own, segment.read_bytes())
        dry = self.session("rm", "chat", "other", "-n")
        self.assertEqual(self.names(), ["other", NAME])
        answer = self.session("rm", "chat", "other", "other")
        self.assertEqual((answer["sessions"], answer["blocks"], answer["shared_blocks"]),
                         (["other"], 3, 3))
        for field in ("sessions", "blocks", "reusable_bytes", "shared_blocks"):
            self.assertEqual(dry[field], answer[field])
        self.assertEqual(self.names(), [NAME])
        self.assertNotIn(own, segment.read_bytes())
        self.assertEqual(self.show()["reusable_tokens"], 188)
        self.esker("session", "fork", "chat", NAME, "branch")
        text = self.esker("session", "rm", "chat", "branch").out
        self.assertIn("removed 1 session, 0 blocks", text)
        self.assertRegex(text, r"(?m)^still shared +6 blocks: others use them, they stay$")
        text = self.esker("session", "rm", "chat", NAME).out
        self.assertIn("removed 1 session, 6 blocks", text)
        self.assertNotIn("still shared", text)
        self.assertEqual(self.paths(), [])
        self.load("chat", self.other_slot)  # a path of no session
        self.keep()
        answer = self.session("rm", "chat", NAME)
        self.assertEqual((answer["blocks"], answer["shared_blocks"]), (3, 3))
        self.assertTrue(self.document("verify", "chat")["ok"])

    def test_rm_settles_all_names_before_any_goes(self):
        self.create()
        self.keep("one")
        self.keep("two")
        self.assertIn("did you mean \"two\"?",
                      self.refused("session", "rm", "chat", "one", "twoo", code=3))
        self.refused("session", "rm", "chat")
        self.refused("session", "rm", "chat", "one", "--expired")
        self.assertEqual(self.names(), ["one", "two"])

    def test_rm_expired_takes_only_those_whose_time_is_over(self):
        self.create()
        self.keep("stays", SLOT, "--ttl", "1d")
        self.keep("for ever")
        self.assertIn("removed 0 sessions", self.esker("session", "rm", "chat", "--expired").out)
        self.keep("short", self.other_slot, "--ttl", "1s")
        while not self.show("short")["expired"]:
            time.sleep(0.1)
        self.assertRegex(self.esker("session", "ls", "chat").out, r"(?m)^short .* expired$")
        self.refused("export", "chat", "--session", "short", "--like", SLOT, "-o", "no", code=3)
        self.assertIn("over", self.refused("import", "chat", SLOT, "--assume-model", "--session",
                                           "short", code=3))
        self.assertIn("short", self.esker("session", "rm", "chat", "--expired", "-n").out)
        self.assertEqual(self.session("rm", "chat", "--expired")["sessions"], ["short"])
        self.assertEqual(self.names(), ["for ever", "stays"])

    def test_on_a_terminal_rm_asks_first(self):
        self.create()
        self.keep()
        code, shown = self.on_terminal("session", "rm", "chat", NAME, answer=b"\n")
        self.assertEqual(code, 2)
        self.assertIn("Forget 1 session of chat? [y/N]", shown)
        self.assertEqual(self.names(), [NAME])
        code, shown = self.on_terminal("session", "rm", "chat", NAME, "-y")
        self.assertEqual((code, "[y/N]" in shown), (0, False))
        self.assertEqual(self.names(), [])

    def test_a_fork_shares_everything_and_goes_its_own_way(self):
        self.create()
        self.keep(NAME, SLOT, "--set", "user=7")
        text = self.esker("session", "fork", "chat", NAME, "branch").out
        self.assertIn("188 of 188 tokens are reusable", text)
        self.assertEqual(self.document("stat", "chat")["blocks_ready"], 6)
        self.assertEqual(self.show("branch")["metadata"], {"user": "7"})
        self.keep("branch", self.other_slot)
        self.assertEqual(self.keep(NAME)["common_tokens"], 188)
        self.session("rm", "chat", "branch")
        self.assertEqual(self.show()["reusable_tokens"], 188)

    def test_rename_keeps_all_but_the_name(self):
        self.create()
        self.keep(NAME, SLOT, "--set", "user=7")
        answer = self.session("rename", "chat", NAME, "closed")
        self.assertEqual((answer["from"], answer["name"]), (NAME, "closed"))
        self.assertEqual(self.names(), ["closed"])
        found = self.show("closed")
        self.assertEqual((found["reusable_tokens"], found["metadata"]), (188, {"user": "7"}))
        self.refused("session", "show", "chat", NAME, code=3)

    def test_a_name_that_is_taken_is_refused(self):
        self.create()
        self.keep()
        self.keep("other", self.other_slot)
        for verb in ("fork", "rename"):
            self.assertIn("other", self.refused("session", verb, "chat", NAME, "other"))
        self.assertEqual(self.names(), ["other", NAME])
        self.assertEqual(self.keep("other", self.other_slot)["common_tokens"], 188)

    def test_a_kept_session_is_not_evicted_until_it_is_let_go(self):
        self.create()
        self.keep()
        self.keep("other", self.other_slot)
        text = self.esker("session", "keep", "chat", NAME).out
        self.assertIn("188 of 188 tokens", text)
        self.assertRegex(self.esker("session", "ls", "chat").out, rf"(?m)^{NAME} +188 +188 +188 ")
        self.esker("evict", "chat", "--to", "0")
        self.assertEqual(self.show()["reusable_tokens"], 188)
        self.assertLess(self.show("other")["reusable_tokens"], 188)
        found = self.session("keep", "chat", NAME, "--off")["session"]
        self.assertEqual((found["kept"], found["kept_tokens"]), (False, 0))
        self.esker("evict", "chat", "--to", "0")
        self.assertEqual(self.show()["reusable_tokens"], 0)

    def test_what_is_kept_has_a_limit(self):
        self.create()
        self.keep()
        self.refused("session", "keep", "chat", NAME, "--keep-max", "4K")
        self.assertFalse(self.show()["kept"])
        self.assertIn("12 parsecs", self.refused("session", "keep", "chat", NAME, "--keep-max",
                                                 "12 parsecs"))
        self.refused("session", "keep", "chat", NAME, "--keep-max", "1M", "--off")
        found = self.session("keep", "chat", NAME, "--keep-max", "1M")["session"]
        self.assertEqual((found["kept"], found["kept_tokens"], found["keep_max_bytes"]),
                         (True, 188, 1 << 20))
        said = self.refused("session", "keep", "chat", NAME, "--keep-max", "1K")
        self.assertRegex(said, r'"support 17": [\d.]+ KiB are kept already, and the limit of '
                               r"1\.0 KiB is below that; give a higher one, or let")
        self.keep("other", self.other_slot)
        self.assertIn("are kept already", self.refused("session", "keep", "chat", "other",
                                                       "--keep-max", "1K"))
        self.assertEqual(self.show()["keep_max_bytes"], 1 << 20)
