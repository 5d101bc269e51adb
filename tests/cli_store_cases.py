"""Cases of cli_test.py on stores that hold something."""

import json
import os
import shutil
import signal
import struct
import subprocess

from cli_case import BINARY, BLOCK_TOKENS, HANG_S, LOOKS, ROOT, SLOT, SLOT_TOKENS, CliCase

__all__ = ["LookTest", "IdsTest", "OperandTest", "ChangeTest", "DamageTest", "SharingTest",
           "StreamTest", "MoveTest"]

BLOCK_BYTES = 2 * 2 * 128 * BLOCK_TOKENS  # two layers, K and V of 128 bytes


class LookTest(CliCase):
    def test_an_empty_home_says_what_to_do_next(self):
        self.assertIn("esker create", self.esker().out)
        answer = self.esker("ls")
        self.assertEqual(answer.out, "")
        self.assertIn("no stores", answer.err)
        self.assertEqual(self.document("ls")["stores"], [])

    def test_esker_alone_shows_stores_disk_and_next_steps(self):
        self.filled()
        text = self.esker().out
        for word in ("chat", "tiny", "on disk", "Next:", "esker ls chat"):
            self.assertIn(word, text)
        answer = self.esker("--json").json
        self.assertEqual(answer["schema"], "esker.overview/1")
        self.assertEqual(answer["stores"][0]["store"], "chat")
        self.assertGreater(answer["disk_bytes"], 0)

    def test_ls_lists_stores_with_model_size_and_last_use(self):
        self.filled()
        self.assertRegex(self.esker("ls").out, r"chat +tiny +[\d.]+ MiB +16.0 MiB +.*(ago|now)")
        broken = self.home / "broken"
        broken.mkdir(mode=0o700)
        (broken / "esker").write_bytes(b"no superblock at all" * 4000)
        self.assertRegex(self.esker("ls").out, r"broken +unreadable")
        self.assertIn("problem", self.document("ls")["stores"][0])

    def test_ls_of_an_empty_store_is_fine(self):
        self.create()
        self.assertEqual(self.document("ls", "chat")["paths"], [])
        self.esker("ls", "chat")

    def test_ls_shows_paths_with_tokens_bytes_age_and_pins(self):
        self.filled()
        paths = self.paths()
        self.assertEqual([p["tokens"] for p in paths], [SLOT_TOKENS] * 2)
        self.assertEqual([p["blocks"] for p in paths], [6] * 2)
        self.assertEqual([p["pins"] for p in paths], [0] * 2)
        self.assertEqual([p["own_bytes"] for p in paths], [3 * BLOCK_BYTES] * 2)
        text = self.esker("ls", "chat").out
        for path in paths:
            row = rf"(?m)^{path['path'][:12]} +188 +96.0 KiB +48.0 KiB +(just now|\d+ s ago) +0"
            self.assertRegex(text, row)
        self.assertIn(str(6 * BLOCK_BYTES), self.esker("ls", "chat", "--bytes").out)

    def test_every_look_has_json_and_a_text_that_names_no_error(self):
        self.filled()
        for verb in LOOKS:
            self.document(verb, "chat")
            self.assertEqual(self.esker(verb, "chat", "-q").err, "")

    def test_stat_counts_what_happened(self):
        self.filled()
        before = self.document("stat", "chat")
        self.assertEqual(before["blocks_ready"], 9)
        self.assertEqual(before["store_bytes"], 9 * BLOCK_BYTES)
        self.assertEqual(before["counters"]["published_blocks"], 9)
        self.assertRegex(before["since"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertIn("hit tokens", self.esker("stat", "chat").out)

    def test_match_tells_the_length_and_exits_1_for_nothing(self):
        self.filled()
        ids = self.dir / "ids.json"
        ids.write_text(json.dumps([*self.ids, 7, 7]))
        self.assertEqual(self.esker("match", "chat", "--ids", ids).out,
                         "188 of 190 tokens (98.9 %)\n")
        answer = self.document("match", "chat", "--ids", ids, "--first", 50)
        self.assertEqual((answer["tokens"], answer["matched_tokens"]), (50, 50))
        self.assertEqual(self.esker("match", "chat", "--ids", "-", stdin=b"5 6 7", code=1).out,
                         "0 of 3 tokens (0 %)\n")
        self.assertEqual(self.matched(self.ids, "chat", "--namespace", "tenant"), 0)


class IdsTest(CliCase):
    def test_ids_come_as_json_text_and_raw_and_mean_the_same(self):
        self.filled()
        ids = self.ids
        forms = {"json": json.dumps(ids), "tokenize": json.dumps({"tokens": ids}),
                 "pretty": json.dumps(ids, indent=1), "text": " ".join(map(str, ids)),
                 "lines": "\n".join(map(str, ids)) + "\n", "commas": ", ".join(map(str, ids))}
        raw = {name: text.encode() for name, text in forms.items()}
        raw["int32"] = struct.pack(f"<{len(ids)}i", *ids)
        for name, data in raw.items():
            with self.subTest(form=name):
                file = self.dir / name
                file.write_bytes(data)
                for words in (("--ids", file), ("--ids", "-")):
                    answer = self.document("match", "chat", *words, stdin=data)
                    self.assertEqual(answer["matched_tokens"], SLOT_TOKENS)

    def test_hostile_ids_are_refused_by_name(self):
        self.create()
        for data in (b"", b"[]", b"[1, 2", b"[1, [2]]", b"[" * 100000, b"{" * 1000, b'["1"]',
                     b"[1.5]", b"[null]", b"[2147483648]", b"[-2147483649]", b"[1e3]", b"[1] [2]",
                     b'{"tokens": [1], "tokens": [2]}', b'{"ids": [1]}', b'{"tokens": 3}', b"3.5",
                     b"2147483648", b"99999999999999999999", b"hello world", "grüße".encode(),
                     b"1 2 x", b"\0\0\0", b"\1\0\0\0\2", b"[1,,2]", b"\xff\xfe[\0001\0]\0!"):
            with self.subTest(data=data[:20]):
                self.assertIn("standard input", self.refused("match", "chat", "--ids", "-",
                                                             stdin=data))
        self.refused("match", "chat", "--ids", self.dir)
        self.refused("match", "chat", "--ids", self.dir / "absent")

    def test_a_file_of_ids_without_end_is_bounded(self):
        self.create()
        huge = self.dir / "huge"
        with open(huge, "wb") as file:
            file.truncate(1 << 34)
        self.assertIn("larger", self.refused("match", "chat", "--ids", huge))
        self.assertIn("larger", self.refused("match", "chat", "--ids", "/dev/zero"))


class OperandTest(CliCase):
    def test_the_store_may_come_from_s_or_the_environment(self):
        self.filled()
        env = {"ESKER_STORE": "chat"}
        for words, more in ((("-s", "chat"), {}), (("--store", "chat"), {}), ((), {"env": env})):
            self.assertEqual(self.document("info", *words, **more)["store"], "chat")
            self.assertEqual(len(self.document("ls", *words, **more)["paths"]), 2)
        self.create("other")
        self.assertEqual(self.document("info", "other", env=env)["store"], "other")
        self.assertEqual(self.document("info", "-s", "other", env=env)["store"], "other")

    def test_rm_takes_paths_alone_when_the_store_is_known(self):
        self.filled()
        first, second = (p["path"][:12] for p in self.paths())
        self.esker("rm", first, env={"ESKER_STORE": "chat"})
        self.esker("rm", "-s", "chat", second)
        self.assertEqual(self.paths(), [])

    def test_a_name_never_means_the_working_directory(self):
        self.create("./chat")
        self.refused("info", "chat", code=3)
        self.esker("info", "./chat")
        self.esker("info", ".", cwd=self.dir / "chat")


class ChangeTest(CliCase):
    def test_rm_forgets_one_path_and_wipes_it(self):
        self.filled()
        segment = self.home / "chat" / "segments" / "00000"
        label = self.other_ids[4 * BLOCK_TOKENS:5 * BLOCK_TOKENS]
        needle = struct.pack(f"<{BLOCK_TOKENS}i", *label)
        self.assertIn(needle, segment.read_bytes())
        doomed = next(p for p in self.paths() if self.path_of(self.other_slot) == p["path"])
        answer = self.document("rm", "chat", doomed["path"][:12])
        self.assertEqual((answer["paths"], answer["blocks"]), (1, 3))
        self.assertEqual(self.matched(self.other_ids), 100)
        self.assertEqual(self.matched(self.ids), SLOT_TOKENS)
        self.assertNotIn(needle, segment.read_bytes())
        self.assertTrue(self.document("verify", "chat")["ok"])

    def path_of(self, slot):
        return self.load("chat", slot)["path"]

    def test_a_dry_run_tells_the_same_and_changes_nothing(self):
        self.filled()
        before = self.paths()
        first = before[0]["path"]
        for words in (("rm", "chat", first), ("evict", "chat", "--to", "0"),
                      ("evict", "chat", "--older-than", "0s"), ("destroy", "chat"),
                      ("trim", "chat", "--keep-free", "1P")):
            self.assertIn("would have", self.esker(*words, "-n").out)
            dry = self.document(*words, "--dry-run")
            self.assertTrue(dry["dry_run"])
            self.assertEqual([p["path"] for p in self.paths()], [p["path"] for p in before])
        dry = self.document("rm", "chat", first, "-n")
        real = self.document("rm", "chat", first)
        for field in ("paths", "blocks", "reusable_bytes", "pinned_blocks"):
            self.assertEqual(dry[field], real[field])

    def test_rm_settles_all_names_before_it_removes_any(self):
        self.filled()
        first = self.paths()[0]["path"]
        absent = "0" * 16
        self.assertIn("no path begins with", self.refused("rm", "chat", first, absent))
        self.assertIn("no path name", self.refused("rm", "chat", first, "nonsense"))
        self.assertEqual(len(self.paths()), 2)

    def test_an_ambiguous_name_lists_the_candidates(self):
        self.create()
        data = bytearray(SLOT.read_bytes())
        for number in range(17):  # two of 17 begin with the same digit
            struct.pack_into("<i", data, 24, 1000 + number)
            (self.dir / "slot").write_bytes(data)
            self.load("chat", self.dir / "slot")
        names = sorted(p["path"] for p in self.paths())
        digit = next(a[0] for a, b in zip(names, names[1:]) if a[0] == b[0])
        text = self.refused("rm", "chat", digit)
        for name in [n for n in names if n[0] == digit][:8]:
            self.assertIn(name, text)
        self.assertEqual(len(self.paths()), 17)

    def test_evict_to_a_size_and_by_age(self):
        self.filled()
        self.assertEqual(self.document("evict", "chat", "--older-than", "1d")["blocks"], 0)
        answer = self.document("evict", "chat", "--to", str(5 * BLOCK_BYTES))
        self.assertGreaterEqual(answer["blocks"], 4)
        self.assertLessEqual(self.document("stat", "chat")["store_bytes"], 5 * BLOCK_BYTES)
        text = self.esker("evict", "chat", "--older-than", "0s").out
        self.assertIn("freed for reuse", text)
        self.assertIn("returned to disk", text)
        self.assertEqual(self.paths(), [])

    def test_trim_returns_the_disk_of_free_blocks(self):
        self.filled()
        self.esker("evict", "chat", "--to", "0")
        answer = self.document("trim", "chat", "--keep-free", "1P")
        self.assertGreater(answer["disk_bytes"], 0)
        self.assertEqual(self.document("trim", "chat", "--keep-free", "1")["disk_bytes"], 0)
        self.load("chat", SLOT)
        self.assertTrue(self.document("verify", "chat")["ok"])

    def test_destroy_deletes_what_it_knows_and_nothing_else(self):
        self.filled()
        stranger = self.home / "chat" / "notes.txt"
        stranger.write_text("mine")
        self.assertIn("notes.txt", self.refused("destroy", "chat"))
        self.assertEqual(stranger.read_text(), "mine")
        self.filled("second")
        self.assertIn("destroyed second", self.esker("destroy", "second").out)
        self.assertFalse((self.home / "second").exists())

    def test_on_a_terminal_what_destroys_asks_first(self):
        self.filled()
        path = self.paths()[0]["path"]
        for words in (("rm", "chat", path), ("evict", "chat", "--to", "0"), ("destroy", "chat")):
            code, shown = self.on_terminal(*words, answer=b"\n")
            self.assertEqual(code, 2)
            self.assertIn("[y/N]", shown)
        self.assertEqual(len(self.paths()), 2)
        self.assertEqual(self.on_terminal("rm", "chat", path, answer=b"y\n")[0], 0)
        self.assertEqual(len(self.paths()), 1)
        code, shown = self.on_terminal("destroy", "chat", "-y")
        self.assertEqual(code, 0)
        self.assertNotIn("[y/N]", shown)


class DamageTest(CliCase):
    def damage(self):
        """Flips a byte of a stored row."""
        segment = self.home / "chat" / "segments" / "00000"
        data = bytearray(segment.read_bytes())
        row = SLOT.read_bytes()[-128:]
        at = data.index(row)
        data[at] ^= 1
        segment.write_bytes(data)

    def test_verify_passes_what_is_whole(self):
        self.filled()
        self.assertRegex(self.esker("verify", "chat").out, r"^verified 9 blocks, .*: 0 damaged\n")

    def test_verify_names_damage_and_exits_1(self):
        self.filled()
        self.damage()
        self.assertRegex(self.esker("verify", "chat", code=1).out, r"00000: block \d+: .*\n")
        answer = self.document("verify", "chat", code=1)
        self.assertFalse(answer["ok"])
        self.assertIn("00000", answer["damage"][0]["file"])

    def test_a_store_with_a_lost_superblock_is_damage_to_verify(self):
        self.filled()
        superblock = self.home / "chat" / "esker"
        superblock.write_bytes(b"\xa5" * superblock.stat().st_size)
        self.assertFalse(self.document("verify", "chat", code=1)["ok"])
        self.refused("ls", "chat")


class SharingTest(CliCase):
    def test_ps_shows_who_is_attached_and_destroy_waits_for_them(self):
        self.filled()
        self.assertIn("no process", self.esker("ps", "chat").err)
        holder = self.hold("chat")
        self.assertRegex(self.esker("ps", "chat").out, rf" {holder.pid} +esker +alive ")
        self.refused("destroy", "chat", code=4)
        self.refused("destroy", "chat", "-n", code=4)
        self.assertEqual(len(self.paths()), 2)
        holder.kill()
        holder.wait()
        self.assertEqual(self.document("reap", "chat")["reaped_seats"], 1)
        self.assertEqual(self.document("reap", "chat")["reaped_seats"], 0)
        self.assertEqual(self.document("ps", "chat")["processes"], [])
        self.assertGreater(self.document("stat", "chat")["counters"]["reaped_seats"], 0)
        self.assertIn("seat_reaped", [e["kind"] for e in self.document("log", "chat")["events"]])
        self.esker("destroy", "chat")

    def test_with_every_seat_taken_looking_still_works_and_changing_is_busy(self):
        self.filled("chat", "--seats", 1)
        holder = self.hold("chat")
        for verb in ("info", "ls", "stat", "verify"):
            self.document(verb, "chat")
        self.assertIsNone(self.document("stat", "chat")["counters"])
        self.assertIsNone(self.paths()[0]["pins"])
        self.assertEqual(self.matched(self.ids), SLOT_TOKENS)
        (process,) = self.document("ps", "chat")["processes"]
        self.assertEqual(process["pid"], holder.pid)
        self.assertIsNone(process["pinned_blocks"])
        for words in (("evict", "chat", "--to", "0"), ("rm", "chat", "abc"), ("log", "chat"),
                      ("destroy", "chat", "-n")):
            self.assertIn(str(holder.pid), self.refused(*words, code=4))


class StreamTest(CliCase):
    def test_a_pipe_that_is_closed_early_is_no_complaint(self):
        self.filled()
        for words in (("ls", "chat", "--json"), ("--help",), ("info", "chat")):
            for preexec in (None, lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN)):
                reader, writer = os.pipe()
                os.close(reader)
                done = subprocess.run([BINARY, *words], env=self.env, stdout=writer,
                                      stderr=subprocess.PIPE, timeout=HANG_S, preexec_fn=preexec)
                os.close(writer)
                self.assertEqual(done.stderr, b"")
                self.assertEqual(done.returncode, 141)

    def test_log_follows_until_its_reader_goes(self):
        self.filled()
        follower = subprocess.Popen([BINARY, "log", "chat", "-f", "--json"], env=self.env,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.attached.append(follower)
        first = json.loads(follower.stdout.readline())
        self.assertEqual(first["schema"], "esker.log/1")
        self.esker("rm", "chat", self.paths()[0]["path"])
        kinds = []
        while "removed" not in kinds:
            kinds.append(json.loads(follower.stdout.readline())["kind"])
        follower.stdout.close()
        follower.wait(HANG_S)

    def test_a_result_that_cannot_be_written_is_exit_2(self):
        self.filled()
        for words in (("ls", "chat"), ("info", "chat", "--json"), ("--help",)):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([BINARY, *words], env=self.env, stdout=full,
                                      stderr=subprocess.PIPE, timeout=HANG_S)
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"No space left", done.stderr)

    def test_colour_is_for_terminals_and_for_who_wants_it(self):
        self.filled()
        escape = "\x1b["
        self.assertNotIn(escape, self.esker("ls").out)
        self.assertIn(escape, self.esker("ls", "--color", "always").out)
        self.assertIn(escape, self.on_terminal("ls")[1])
        for words, env in ((("ls",), {"NO_COLOR": "1"}), (("ls",), {"TERM": "dumb"}),
                           (("ls", "--color", "never"), {}), (("ls", "--json"), {})):
            self.assertNotIn(escape, self.on_terminal(*words, env=env)[1])

    def test_no_escape_sequence_of_others_reaches_the_terminal(self):
        self.filled()
        hostile = self.dir / "\x1b[31mred\x1b[0m"
        shutil.copytree(self.home / "chat", self.home / hostile.name)
        self.assertNotIn("\x1b", self.esker("ls").out)
        self.assertNotIn("\x1b", self.refused("info", hostile, code=3))
        self.assertIn(hostile.name, [s["store"] for s in self.document("ls")["stores"]])


class MoveTest(CliCase):
    def test_import_stores_only_what_is_missing(self):
        self.filled()
        again = self.load("chat", SLOT)
        self.assertEqual((again["tokens"], again["new_tokens"]), (SLOT_TOKENS, 0))
        self.assertEqual(self.document("stat", "chat")["blocks_ready"], 9)

    def test_a_prefix_exported_like_its_file_is_that_file(self):
        self.filled()
        path = self.load("chat", SLOT)["path"]
        self.esker("export", "chat", path[:12], "--like", SLOT, "-o", "out.slot")
        self.assertEqual((self.dir / "out.slot").read_bytes(), SLOT.read_bytes())
        self.refused("export", "chat", path, "--like", SLOT, "-o", "out.slot")
        self.esker("export", "chat", path, "--like", SLOT, "-o", "out.slot", "-f")
        piped = subprocess.run([BINARY, "export", "chat", path, "--like", SLOT, "-o", "-"],
                               env=self.env, capture_output=True, timeout=HANG_S)
        self.assertEqual(piped.stdout, SLOT.read_bytes())

    def test_a_file_never_goes_to_a_terminal(self):
        self.filled()
        code, shown = self.on_terminal("export", "chat", self.paths()[0]["path"], "--like", SLOT,
                                       "-o", "-")
        self.assertEqual(code, 2)
        self.assertNotIn("qsgg", shown)

    def test_import_wants_the_model_and_compares_it(self):
        self.create()
        self.refused("import", "chat", SLOT, code=5)
        self.assertIn("name", self.refused("import", "chat", SLOT, "--model", "name=huge", code=5))
        self.refused("import", "chat", SLOT, "--assume-model", "--model", "name=tiny")
        self.esker("import", "chat", SLOT, "--assume-model")

    def test_a_sliding_window_file_is_refused_as_such(self):
        self.create()
        slot = ROOT / "tests" / "golden" / "slots" / "swa-tiny.slot"
        self.assertIn("sliding", self.refused("import", "chat", slot, "--model", "name=tiny",
                                              code=5))
        self.assertEqual(self.paths(), [])
