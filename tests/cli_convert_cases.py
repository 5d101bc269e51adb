"""Cases of cli_test.py on `esker convert`."""

import dataclasses
import json
import os
import signal
import struct
import subprocess
import time

from cli_case import BINARY, HANG_S, SLOT, SLOT_TOKENS
from cli_convert_case import NAME, REAL_SESSION, REAL_SLOT, ConvertCase, session_of
from llama_tool_test import NOFLASH, SLOTS, SMOL, SPLIT, Slot

__all__ = ["ConvertLlamaTest", "ConvertSnapshotTest", "ConvertRefusalTest"]


class ConvertLlamaTest(ConvertCase):
    def test_what_llama_cpp_saved_of_one_context_becomes_each_other(self):
        answer, data = self.convert(REAL_SESSION, "a.slot")
        self.assertEqual(data, REAL_SLOT.read_bytes())
        self.assertEqual((answer["from"], answer["to"], answer["tokens"], answer["bytes"]),
                         ("llama-session", "llama", 4, len(data)))
        answer, data = self.convert(REAL_SLOT, "a.session", "--arch", "llama")
        self.assertEqual(data, REAL_SESSION.read_bytes())
        self.assertEqual((answer["from"], answer["to"]), ("llama", "llama-session"))
        _, data = self.convert(SMOL, "b.session", "--like", REAL_SESSION)
        self.assertEqual(data, session_of(Slot.read(SMOL.read_bytes())))

    def test_all_versions_and_layouts_of_both_kinds_become_each_other(self):
        for version in (3, 4):
            for packed in (False, True):
                for transposed in (False, True):
                    for streams in (1, 3):
                        slot = dataclasses.replace(self.tiny.first(40), version=version,
                                                   packed=packed, transposed=transposed,
                                                   streams=streams)
                        with self.subTest(version=version, packed=packed, transposed=transposed,
                                          streams=streams):
                            path = self.put("in.slot", slot)
                            _, session = self.convert(path, "out.session", "--arch", "qwen3")
                            self.assertEqual(session, session_of(slot, b"qwen3"))
                            _, back = self.convert(self.dir / "out.session", "back.slot", "--like",
                                                   path)
                            self.assertEqual(back, slot.write())
                            _, plain = self.convert(path, "plain.slot", "--like", SLOT)
                            self.assertEqual(plain, self.tiny.first(40).write())

    def test_a_file_of_an_old_version_becomes_a_new_one(self):
        old = dataclasses.replace(self.tiny, version=3)
        path = self.put("old.slot", old)
        _, data = self.convert(path, "new.slot", "--file-version", 4)
        self.assertEqual(data, SLOT.read_bytes())
        _, data = self.convert(path, "new.session", "--file-version", 11, "--arch", "llama")
        self.assertEqual(data, session_of(self.tiny))
        _, data = self.convert(self.dir / "new.session", "old.session", "--file-version", 10)
        self.assertEqual(data, session_of(old))
        text = self.refused("convert", path, "never.slot", "--file-version", 11)
        self.assertIn("expected 3…4 for sequence files", text)
        text = self.refused("convert", path, "never.session", "--file-version", 4, "--arch", "x")
        self.assertIn("expected 10…11 for session files", text)

    def test_rotated_rows_never_lose_what_tells_it(self):
        text = self.refused("convert", SPLIT, "never.slot", "--file-version", 3, code=5)
        self.assertIn("kv_rot_k", text)
        quantised = [(8, 68, rows[:68 * 16]) for _, _, rows in self.tiny.keys]
        slot = dataclasses.replace(self.tiny.first(16), keys=quantised, values=quantised)
        old = self.put("old.slot", dataclasses.replace(slot, version=3))
        self.assertIn("does not record",
                      self.refused("convert", old, "never.slot", "--file-version", 4, code=5))
        like = self.put("like.slot", dataclasses.replace(slot, rotation=(64, 64)))
        self.assertIn("kv_rot_k",
                      self.refused("convert", old, "never.slot", "--like", like, code=5))
        plain = self.put("plain.slot", slot)
        self.assertIn("does not record",
                      self.refused("convert", old, "never.slot", "--like", plain, code=5))
        self.assertEqual(list(self.dir.glob("never*")), [])
        _, data = self.convert(SPLIT, "whole.session", "--arch", "llama")
        session = self.dir / "whole.session"
        _, back = self.convert(session, "whole.slot", "--like", SPLIT)
        self.assertEqual(Slot.read(back), Slot.read(SPLIT.read_bytes()))

    def test_pipes_and_first_tokens(self):
        done = subprocess.run([BINARY, "convert", "-", "-", "--to", "llama", "--first", "3"],
                              input=REAL_SESSION.read_bytes(), env=self.env, capture_output=True,
                              timeout=HANG_S, check=True)
        self.assertEqual(done.stdout, Slot.read(REAL_SLOT.read_bytes()).first(3).write())
        self.assertIn(b"3 tokens", done.stderr)
        both = self.esker("convert", SLOT, "-", "--to", "llama", "--json", code=2)
        self.assertEqual(both.out, "")

    def test_an_existing_file_stays_without_force(self):
        self.put("mine.slot", b"precious")
        self.assertIn("-f", self.refused("convert", SLOT, self.dir / "mine.slot"))
        self.assertEqual((self.dir / "mine.slot").read_bytes(), b"precious")


class ConvertSnapshotTest(ConvertCase):
    def test_a_slot_becomes_a_snapshot_and_comes_back(self):
        answer, data = self.convert(SLOT, "chat.esnap", "--model", "name=tiny")
        self.assertEqual(data[:8], b"ESKERSNP")
        self.assertEqual((answer["tokens"], answer["bytes"]), (SLOT_TOKENS, len(data)))
        self.no_leftovers()
        _, back = self.convert(self.dir / "chat.esnap", "back.slot", "--like", SLOT)
        self.assertEqual(back, SLOT.read_bytes())
        _, back = self.convert(self.dir / "chat.esnap", "back.session", "--like", SLOT, "--arch",
                               "llama")
        self.assertEqual(back, session_of(self.tiny))
        self.assertIn("--like", self.refused("convert", self.dir / "chat.esnap", "never.slot"))

    def test_sessions_and_namespaces_are_kept_by_name(self):
        file = self.snapshot("a.esnap", SLOT, "--session", NAME, "--namespace", "tenant")
        self.assertEqual(self.document("convert", file, "chat", "--to", "store", "--namespace",
                                       "tenant")["tokens"], SLOT_TOKENS)
        listed = self.esker("session", "ls", "chat", "--json").json["sessions"]
        self.assertEqual([(s["name"], s["reusable_tokens"]) for s in listed],
                         [(NAME, SLOT_TOKENS)])
        said = self.esker("convert", file, "other", "--to", "store").err
        self.assertIn("188 tokens belong to namespaces", said)
        ids = self.put("ids.json", json.dumps(self.tiny.tokens).encode())
        self.refused("convert", file, "never.slot", "--like", SLOT, "--ids", ids, code=3)
        for words in (("--session", NAME), (), ("--ids", ids, "--namespace", "tenant")):
            _, back = self.convert(file, "back.slot", "--like", SLOT, *words)
            self.assertEqual(back, SLOT.read_bytes())
        self.assertIn("no session", self.refused("convert", file, "never.slot", "--like", SLOT,
                                                 "--session", "other", code=3))

    def test_a_prompt_gets_what_it_shares_with_the_snapshot(self):
        file = self.snapshot()
        ids = self.put("ids.json", json.dumps([*self.tiny.tokens[:80], 7, 7]).encode())
        answer, data = self.convert(file, "part.slot", "--like", SLOT, "--ids", ids)
        self.assertGreaterEqual(answer["tokens"], 64)
        self.assertLessEqual(answer["tokens"], 80)
        self.assertEqual(answer["asked_tokens"], 82)
        self.assertEqual(data, self.tiny.first(answer["tokens"]).write())
        none = self.put("none.json", b"[1, 2, 3]")
        self.assertEqual(self.esker("convert", file, self.dir / "none.slot", "--like", SLOT,
                                    "--ids", none, code=1).out, "")
        self.assertFalse((self.dir / "none.slot").exists())

    def test_a_store_goes_in_and_out(self):
        self.assertEqual(self.document("convert", SLOT, "chat", "--to", "store", "--session", NAME,
                                       "--model", "name=tiny")["tokens"], SLOT_TOKENS)
        self.assertEqual(self.document("convert", SLOT, "chat", "--model", "name=tiny")["tokens"],
                         SLOT_TOKENS)
        text = self.refused("convert", SLOT, "chat", "--model", "name=other", code=5)
        self.assertIn("name is 'other'", text)
        _, data = self.convert("chat", "chat.esnap")
        for source in ("chat", self.dir / "chat.esnap"):
            _, back = self.convert(source, "back.slot", "--like", SLOT)
            self.assertEqual(back, SLOT.read_bytes())
            _, back = self.convert(source, "back.slot", "--like", SLOT, "--first", 33)
            self.assertEqual(back, self.tiny.first(33).write())

    def test_which_of_several_must_be_said(self):
        self.filled()
        text = self.refused("convert", "chat", "never.slot", "--like", SLOT)
        paths = [entry["path"] for entry in self.paths()]
        self.assertEqual(len(paths), 2)
        for path in paths:
            self.assertIn(path[:12], text)
        self.convert("chat", "both.esnap")
        self.refused("convert", self.dir / "both.esnap", "never.slot", "--like", SLOT)
        found = [self.convert("chat", "one.slot", "--like", SLOT, "--path", path)[1]
                 for path in paths]
        self.assertEqual(set(found), {SLOT.read_bytes(), self.other_slot.read_bytes()})

    def test_rows_without_flash_attention_become_what_the_target_has(self):
        self.snapshot("noflash.esnap", NOFLASH)
        file = self.dir / "noflash.esnap"
        _, back = self.convert(file, "back.slot", "--like", NOFLASH)
        self.assertEqual(back, NOFLASH.read_bytes())
        _, flash = self.convert(file, "flash.slot", "--like", SMOL)
        self.assertEqual(Slot.read(flash).values, Slot.read(NOFLASH.read_bytes()).values)

    def test_the_snapshot_can_go_to_a_pipe(self):
        done = subprocess.run([BINARY, "convert", SLOT, "-", "--to", "esnap"], env=self.env,
                              cwd=self.dir, capture_output=True, timeout=HANG_S, check=True)
        file = self.put("piped.esnap", done.stdout)
        _, back = self.convert(file, "back.slot", "--like", SLOT)
        self.assertEqual(back, SLOT.read_bytes())

    def test_what_a_killed_conversion_left_is_swept_and_others_stay(self):
        dead = subprocess.Popen(["true"])
        dead.wait()
        left = self.dir / f".esker-convert-{dead.pid}-00000001"
        mine = self.dir / f".esker-convert-{os.getpid()}-00000001"
        for path in (left, mine):
            self.esker("create", path, "--like", SLOT, "--capacity", "16M", "--segment-size", "1M")
        self.snapshot()
        self.assertFalse(left.exists())
        self.assertTrue(mine.exists())

    def test_a_conversion_that_is_interrupted_leaves_nothing(self):
        big = self.tiny.first(2)
        count = 60000
        keys = [(kind, size, bytes(size) * count) for kind, size, _ in big.keys]
        slot = dataclasses.replace(big, tokens=[i % 1000 for i in range(count)], keys=keys,
                                   values=keys)
        path = self.put("big.slot", slot)
        for wait_s in (0.0, 0.02, 0.05, 0.1):
            process = subprocess.Popen([BINARY, "convert", path, self.dir / "out.esnap"],
                                       env=self.env, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            time.sleep(wait_s)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=HANG_S)
            self.assertIn(process.returncode, (0, -signal.SIGINT))
            self.no_leftovers()
            # A signal that comes when the file has its name already finds it whole.
            if process.returncode == 0 or (self.dir / "out.esnap").exists():
                _, back = self.convert(self.dir / "out.esnap", "back.slot", "--like", path)
                self.assertTrue(back == path.read_bytes())
                (self.dir / "out.esnap").unlink()


class ConvertRefusalTest(ConvertCase):
    def test_kinds_that_are_not_what_was_said_are_refused(self):
        self.assertIn("--from says esnap, but it is llama",
                      self.refused("convert", SLOT, "x.slot", "--from", "esnap"))
        self.assertIn("--from says llama, but it is llama-session",
                      self.refused("convert", REAL_SESSION, "x.slot", "--from", "llama"))
        file = self.snapshot()
        self.assertIn("repack", self.refused("convert", file, "y.esnap"))
        self.assertIn("--to", self.refused("convert", SLOT, "x.unknown"))
        self.refused("convert", SLOT, "x.slot", "--to", "gguf")
        self.refused("convert", SLOT)
        self.refused("convert", SLOT, "x.slot", "y.slot")
        self.refused("convert", "-s", "chat", SLOT, "x.slot")
        self.refused("convert", "no-such", "x.slot", "--like", SLOT, code=3)
        self.assertIn("one text", self.refused("convert", SLOT, "x.slot", "--session", NAME))
        self.refused("convert", SLOT, "x.session")
        self.assertIn("--arch", self.refused("convert", SLOT, "x.session", "--arch", "a b"))

    def test_an_option_that_means_nothing_is_refused_not_ignored(self):
        file = self.snapshot()
        self.filled()
        ids = self.put("ids.json", b"[1]")
        for words in ((SLOT, "x.esnap", "--like", SLOT), (SLOT, "x.slot", "--arch", "llama"),
                      (SLOT, "x.esnap", "--file-version", 3), (SLOT, "x.slot", "--model", "a=b"),
                      (SLOT, "x.safetensors", "--assume-model"), (SLOT, "x.esnap", "--ids", ids),
                      (SLOT, "x.esnap", "--path", "9f"), (SLOT, "x.esnap", "--first", 9),
                      (SLOT, "x.slot", "--session", NAME), (SLOT, "x.slot", "--namespace", "a"),
                      (file, "y", "--to", "store", "--session", NAME),
                      (file, "y", "--to", "store", "--first", 3),
                      (file, "x.slot", "--like", SLOT, "--namespace", "a"),
                      ("chat", "y", "--to", "store"), ("chat", "-", "--to", "store"),
                      ("chat", "x.esnap", "--first", 3), ("-", "x.slot", "--from", "esnap")):
            with self.subTest(words=words):
                self.refused("convert", *words)
        self.assertEqual(list(self.dir.glob("x.*")), [])
        self.assertFalse((self.home / "y").exists())

    def test_a_prompt_of_a_store_becomes_a_snapshot_of_its_own(self):
        self.filled()
        ids = self.put("ids.json", json.dumps(self.tiny.tokens).encode())
        self.convert("chat", "part.esnap", "--ids", ids, "--first", 64)
        answer, data = self.convert(self.dir / "part.esnap", "part.slot", "--like", SLOT)
        self.assertEqual(data, self.tiny.first(answer["tokens"]).write())
        self.assertEqual(answer["tokens"], 64)

    def test_contexts_that_cannot_be_one_text_are_refused_by_name(self):
        data = bytearray(session_of(self.tiny))
        cells = 12 + 4 * SLOT_TOKENS + 9 + 8
        struct.pack_into("<i", data, cells + 12 * 100 + 8, 1)
        several = self.put("several.session", bytes(data))
        for target in ("x.slot", "x.esnap", "x.safetensors"):
            text = self.refused("convert", several, target, code=5)
            self.assertIn("several sequences", text)
        text = self.refused("convert", SLOTS / "swa-tiny.slot", "x.slot", code=5)
        self.assertIn("sliding-window", text)
        self.no_leftovers()

    def test_files_that_are_cut_off_or_damaged_leave_nothing(self):
        session = session_of(self.tiny)
        for length in (0, 3, 7, 11, 400, 770, 775, 3000, len(session) // 2, len(session) - 1):
            path = self.put("cut.session", session[:length])
            for target in ("x.slot", "x.esnap", "x.safetensors"):
                self.assertIn("cut.session", self.refused("convert", path, target))
        self.assertEqual(list(self.dir.glob("x.*")), [])
        self.no_leftovers()

    def test_a_damaged_snapshot_is_named_and_nothing_is_written(self):
        file = self.snapshot()
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        bad = self.put("bad.esnap", bytes(data))
        for target in ("x.slot", "x.safetensors"):
            self.assertIn("bad.esnap", self.refused("convert", bad, target, "--like", SLOT))
        piped = self.esker("convert", bad, "-", "--to", "safetensors", code=2)
        self.assertEqual(piped.out, "")
        self.assertEqual(list(self.dir.glob("x.*")), [])

    def test_another_model_s_file_is_no_pattern(self):
        file = self.snapshot()
        text = self.refused("convert", file, "x.slot", "--like", SMOL, code=5)
        self.assertIn("layers", text)
        self.assertFalse((self.dir / "x.slot").exists())
