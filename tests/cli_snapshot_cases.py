"""Cases of cli_test.py on snapshots: moving stores, choosing what moves, tenants."""

import json
import os
import socket
import subprocess
import threading

from cli_case import BINARY, HANG_S, SLOT, SLOT_TOKENS
from cli_session_case import NAME
from cli_snapshot_case import BLOCKS, SMALL, TOKENS, SnapshotCase

__all__ = ["SnapshotMoveTest", "SnapshotChoiceTest", "SnapshotTenantTest"]


class SnapshotMoveTest(SnapshotCase):
    def test_a_store_goes_through_a_file_and_comes_back_the_same(self):
        text = self.esker("export", "chat", "-o", self.file).out
        self.assertRegex(text, rf"^exported 2 paths, {TOKENS} tokens, 140\.0 KiB -> \d.* KiB in "
                               r"\d.* s\n$")
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o600)
        text = self.esker("import", "copy", self.file, "--create", *SMALL).out
        self.assertRegex(text, rf"imported .*chat\.esnap: {BLOCKS} blocks stored, 0 present, "
                               r"140\.0 KiB in")
        self.assertRegex(text, rf"(?m)^tokens +{TOKENS} reachable, 0 unreachable$")
        self.assertTrue(self.diff("chat", "copy")["equal"])
        self.assert_same_rows("copy")
        self.assertTrue(self.document("verify", "copy")["ok"])
        self.assertEqual(len(self.paths("copy")), 2)

    def test_the_numbers_of_export_and_import_agree(self):
        out = self.export()
        self.assertEqual((out["paths"], out["tokens"], out["sessions"]), (2, TOKENS, 0))
        self.assertEqual(out["raw_bytes"], TOKENS * 512)
        self.assertEqual(out["file_bytes"], self.file.stat().st_size)
        self.assertEqual((out["gone_blocks"], out["damaged_blocks"]), (0, 0))
        self.assertIsNone(out["lossy_error"])
        back = self.bring("copy")
        self.assertEqual(back["stored_blocks"], out["blocks"])
        self.assertEqual((back["present_blocks"], back["refused_blocks"]), (0, 0))
        again = self.bring("copy")
        self.assertEqual((again["stored_blocks"], again["present_blocks"]), (0, out["blocks"]))
        self.assertEqual(again["reachable_tokens"], TOKENS)

    def test_a_pipe_moves_a_store_between_two_homes(self):
        other = f"ESKER_HOME={self.dir}/other"
        options = " ".join(SMALL)
        for dash in ("-", "-o -"):
            done = self.shell(f"$ESKER export chat {dash} | {other} $ESKER import --create"
                              f" {options} copy -")
            self.assertIn(b"imported standard input", done.stdout)
            self.assertIn(b"exported 2 paths", done.stderr)
        self.env["ESKER_HOME"] = str(self.dir / "other")
        self.assert_same_rows("copy")
        self.assertEqual(self.document("ls")["stores"][0]["store"], "copy")

    def test_a_store_may_come_from_the_environment(self):
        env = {"ESKER_STORE": "chat"}
        self.esker("export", "-o", self.file, env=env)
        self.shell("ESKER_STORE=chat $ESKER export - | $ESKER verify -")
        path = self.paths()[0]["path"]
        self.esker("export", path[:12], "-o", self.dir / "one.esnap", env=env)
        self.assertEqual(len(self.held(self.dir / "one.esnap")["paths"]), 1)
        self.assertEqual(self.document("import", self.file, env=env)["stored_blocks"], 0)

    def import_by(self, stdin, store):
        return subprocess.Popen([BINARY, "import", store, "-", "--create", *SMALL, "--json"],
                                env=self.env, stdin=stdin, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def test_a_stream_may_come_in_pieces_however_small(self):
        self.export()
        data = self.file.read_bytes()
        process = self.import_by(subprocess.PIPE, "copy")
        for at in range(12):
            process.stdin.write(data[at:at + 1])
            process.stdin.flush()
            threading.Event().wait(0.01)
        out, err = process.communicate(data[12:], timeout=HANG_S)
        self.assertEqual((process.returncode, err), (0, b""))
        self.assertEqual(json.loads(out)["stored_blocks"], BLOCKS)

    def test_a_socket_works_as_a_pipe_does(self):
        self.export()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = self.import_by(theirs, "copy")
            theirs.close()
            ours.sendall(self.file.read_bytes())
            ours.shutdown(socket.SHUT_WR)
            out, err = process.communicate(timeout=HANG_S)
        self.assertEqual((process.returncode, err), (0, b""))
        self.assertEqual(json.loads(out)["stored_blocks"], BLOCKS)

    def test_the_first_bytes_tell_snapshots_from_engine_files(self):
        self.export()
        model = ("--model", "name=tiny")
        self.create("second")
        self.assertIn("path", self.document("import", "second", "-", *model,
                                            stdin=SLOT.read_bytes()))
        self.assertIn("reachable_tokens",
                      self.document("import", "second", "-", stdin=self.file.read_bytes()))
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        writer = threading.Thread(target=fifo.write_bytes, args=(self.file.read_bytes(),))
        writer.start()
        self.assertEqual(self.document("import", "second", fifo)["stored_blocks"], 0)
        writer.join()
        self.refused("import", "second", SLOT, "--format", "esnap")
        self.refused("import", "second", self.file, "--format", "llama", *model)
        for junk in (b"", b"E", b"ESKER", b"ESKERSNP", b"\x00" * 4096):
            self.refused("import", "second", "-", *model, stdin=junk)

    def test_options_of_the_other_kind_of_file_are_refused_by_name(self):
        self.export()
        for option in (("--model", "name=tiny"), ("--assume-model",), ("--session", "x")):
            self.assertIn(option[0], self.refused("import", "chat", self.file, *option))
        for option in (("--assume-same", "name"), ("--no-sessions",), ("--replace-sessions",),
                       ("--create",), ("--create", "--capacity", "16M"),
                       ("--namespace", "a", "--namespace", "b")):
            said = self.refused("import", "chat", SLOT, "--model", "name=tiny", *option)
            self.assertIn(option[0], said)
        self.refused("import", "copy", self.file, "--capacity", "16M")
        self.refused("export", "chat", "--like", SLOT, "--codec", "zstd", "-o", "x")
        self.refused("export", "chat", "--like", SLOT, "--format", "esnap", "-o", "x")

    def test_a_store_that_is_missing_is_named_with_the_way_to_make_it(self):
        self.export()
        self.assertIn("--create", self.refused("import", "nowhere", self.file, code=3))
        self.refused("export", "nowhere", "-o", "x", code=3)
        self.refused("backup", "nowhere", "-o", "x", code=3)
        self.refused("diff", "nowhere", "chat", code=3)
        self.assertFalse((self.dir / "x").exists())

    def test_another_model_is_refused_by_naming_its_keys(self):
        self.export()
        self.esker("create", "other", "--like", SLOT, "--model", "name=tiny2", "--model", "rope=1",
                   *SMALL)
        said = self.refused("import", "other", self.file, code=5)
        for word in ("name", "rope", "tiny2"):
            self.assertIn(word, said)
        said = self.refused("import", "other", self.file, "--assume-same", "name", code=5)
        self.assertIn("rope", said)
        self.assertEqual(self.paths("other"), [])
        done = self.document("import", "other", self.file, "--assume-same", "name",
                             "--assume-same", "rope")
        self.assertEqual(done["stored_blocks"], BLOCKS)
        self.assert_same_rows("other")

    def test_another_geometry_is_refused_whatever_is_assumed(self):
        self.export()
        self.esker("create", "wide", "--layers", 2, "--kv-heads", 2, "--head-dim", 64, "--dtype",
                   "f16", "--model", "name=tiny", *SMALL)
        self.refused("import", "wide", self.file, code=5)
        self.refused("import", "wide", self.file, "--assume-same", "geometry", code=5)
        self.refused("diff", "wide", self.file, code=5)

    def test_a_new_store_has_room_for_the_file_and_what_is_asked_for(self):
        self.export()
        self.document("import", "copy", self.file, "--create", "--segment-size", "1M")
        info = self.document("info", "copy")
        self.assertGreaterEqual(info["capacity_bytes"], BLOCKS * 32 * 512 * 5 // 4)
        self.assertEqual(info["model"]["entries"], {"name": "tiny"})
        self.bring("team", None, "--group")
        info = self.document("info", "team")
        self.assertEqual((info["capacity_bytes"], info["group"]), (16 << 20, True))
        self.refused("import", "zero", self.file, "--create", "--capacity", "0")
        self.assertFalse((self.home / "zero" / "esker").exists())


class SnapshotChoiceTest(SnapshotCase):
    def test_paths_sessions_and_prompts_may_be_chosen(self):
        paths = sorted(path["path"] for path in self.paths())
        self.assertEqual(self.export(paths[0][:10])["tokens"], SLOT_TOKENS)
        self.assertEqual(self.export(*paths)["tokens"], TOKENS)
        self.keep("a")
        self.keep("b", self.other_slot)
        done = self.export("--session", "a")
        self.assertEqual((done["tokens"], done["sessions"]), (SLOT_TOKENS, 1))
        done = self.export("--session", "a", "--session", "b")
        self.assertEqual((done["tokens"], done["sessions"]), (TOKENS, 2))
        ids = self.dir / "ids.json"
        ids.write_text(json.dumps(self.ids[:64]))
        done = self.export("--ids", ids)
        self.assertEqual((done["tokens"], done["sessions"]), (64, 0))
        self.assertEqual(self.export("--ids", ids, "--first", 32)["tokens"], 32)
        self.assertEqual(self.export()["sessions"], 2)

    def test_what_is_not_there_is_refused_and_writes_nothing(self):
        self.keep()
        self.assertIn("did you mean", self.refused("export", "chat", "--session", "suport 17", "-o",
                                                   self.file, code=3))
        self.refused("export", "chat", "0123456789abcdef", "-o", self.file)
        ids = self.dir / "ids.json"
        ids.write_text("[1, 2, 3]")
        answer = self.esker("export", "chat", "--ids", ids, "-o", self.file, code=1)
        self.assertIn("stored", answer.err)
        self.refused("export", "chat", "--first", 3, "-o", self.file)
        self.refused("export", "chat", "--namespace", "x", "-o", self.file)
        self.refused("export", "chat")
        self.refused("export", "chat", "-o", self.file, "-")
        self.assertFalse(self.file.exists())

    def test_an_empty_store_moves_with_its_shape_and_its_model(self):
        self.create("empty")
        self.assertEqual(self.export(store="empty")["paths"], 0)
        self.bring("copy")
        self.assertEqual(self.document("info", "copy")["model"]["entries"], {"name": "tiny"})

    def test_an_export_needs_no_seat(self):
        self.create("narrow", "--seats", 1)
        self.keep("one", store="narrow")
        holder = self.hold("narrow")
        self.assertEqual(self.export(store="narrow")["tokens"], SLOT_TOKENS)
        self.assertEqual(self.document("backup", "narrow", "-o", self.file, "-f")["sessions"], 1)
        self.assertTrue(self.diff("narrow", self.file)["equal"])
        self.assertIn(str(holder.pid), self.refused("import", "narrow", self.file, code=4))

    def test_codecs_are_chosen_and_all_of_them_are_exact(self):
        sizes = {}
        for codec in ("raw", "lz4", "zstd"):
            sizes[codec] = self.export("--codec", codec, "--threads", 2)["file_bytes"]
            held = self.held()
            self.assertEqual({c for c, n in held["chunks"].items() if n} - {"raw"}, {codec} -
                             {"raw"})
            self.assertEqual(held["raw_bytes"], TOKENS * 512)
            self.bring(codec)
            self.assert_same_rows(codec)
        self.assertLess(sizes["zstd"], sizes["raw"])
        self.export("--codec", "zstd", "--level", 19)
        self.assertIn("zstd", self.refused("export", "chat", "--level", 3, "-o", "x"))
        for words in (("--codec", "gzip"), ("--codec", "zstd", "--level", 20), ("--lossy", "q2"),
                      ("--codec", "zstd", "--level", 0), ("--threads", 0)):
            self.refused("export", "chat", *words, "-o", "x")

    def test_info_tells_contents_sizes_and_codecs(self):
        self.keep(NAME, SLOT)
        self.attach("sampler", "x" * 100)
        self.export("--codec", "zstd")
        text = self.esker("info", self.file).out
        for line in (rf"holds +2 paths, {TOKENS} tokens, {BLOCKS} blocks, 1 session",
                     r"codecs +.*zstd: \d+ chunks?",
                     r"size +140\.0 KiB of rows in \d.*: \d\.\d\dx", r"model +name=tiny",
                     r"rows +exact", rf"{NAME} +188 +188 +1 .*"):
            self.assertRegex(text, rf"(?m)^{line}$")
        held = self.held()
        self.assertEqual([s["name"] for s in held["sessions"]], [NAME])
        self.assertEqual(held["sessions"][0]["stored_tokens"], SLOT_TOKENS)
        self.assertEqual(sorted(p["tokens"] for p in held["paths"]), [188, 188])
        self.assertEqual(held["file_bytes"], self.file.stat().st_size)
        head = self.document("info", "-", stdin=self.file.read_bytes())
        self.assertEqual((head["id"], head["file_bytes"]), (held["id"], None))

    def test_lossy_rows_are_smaller_told_and_never_mixed_with_exact_ones(self):
        exact = self.export("--codec", "raw")["file_bytes"]
        for lossy, least in (("q8", 1.5), ("q4", 2.5)):
            file = self.dir / f"{lossy}.esnap"
            text = self.esker("export", "chat", "--lossy", lossy, "-o", file).out
            for plane in "KV":
                self.assertRegex(text, rf"(?m)^lossy {plane}: rms error \d.* \(\d.* %\), at most "
                                       r"\d")
            self.assertGreater(exact / file.stat().st_size, least)
            held = self.held(file)
            self.assertEqual((held["lossy"], held["model"]["entries"]["lossy"]), (lossy, lossy))
            self.assertIn("lossy", self.refused("import", "chat", file, code=5))
            self.assertIn("lossy", self.refused("import", "chat", file, "--assume-same", "lossy",
                                                code=2))
            self.bring(lossy, file)
            self.assertEqual(self.document("info", lossy)["model"]["entries"]["lossy"], lossy)
            found = self.diff("chat", lossy, code=1)
            self.assertGreater(found["unequal_rows"], 0)
            self.assertIn("lossy", found["model"])

    def test_sessions_come_along_unless_they_are_left_out(self):
        self.keep(NAME, SLOT, "--set", "user=7")
        self.attach("sampler", "state of the sampler")
        self.export()
        self.assertEqual(self.bring("bare", None, "--no-sessions")["sessions"], 0)
        self.assertEqual(self.session("ls", "bare")["sessions"], [])
        self.assertEqual(self.bring("copy")["sessions"], 1)
        found = self.session("show", "copy", NAME)
        self.assertEqual((found["reusable_tokens"], found["metadata"]), (188, {"user": "7"}))
        self.assertEqual([a["available"] for a in found["attachments"]], [True])
        self.assertEqual(self.bring("copy")["present_sessions"], 1)

    def test_a_session_with_other_tokens_stays_unless_it_is_to_be_replaced(self):
        self.keep(NAME, SLOT)
        self.export()
        self.create("copy")
        self.keep(NAME, self.other_slot, store="copy")
        answer = self.esker("import", "copy", self.file, code=1)
        self.assertIn(f"\"{NAME}\"", answer.err)
        self.assertIn("--replace-sessions", answer.err)
        self.assertEqual(self.bring("copy", code=1)["skipped_sessions"], [NAME])
        done = self.bring("copy", None, "--replace-sessions")
        self.assertEqual((done["sessions"], done["skipped_sessions"]), (1, []))
        self.assertEqual(self.diff("chat", "copy")["unequal_sessions"], [])


class SnapshotTenantTest(SnapshotCase):
    def setUp(self):
        super().setUp()
        self.keep("theirs", SLOT, "--namespace", "tenant-of-ours")
        self.esker("import", "chat", SLOT, "--model", "name=tiny", "--namespace", "lora=fish")

    def test_the_name_of_a_tenant_is_in_no_byte_of_the_file(self):
        self.export("--codec", "raw")
        self.assertNotIn(b"tenant", self.file.read_bytes())
        self.assertIn(b"lora=fish", self.file.read_bytes())
        spaces = self.held()["namespaces"]
        self.assertEqual(sorted(space["named"] for space in spaces), [False, True, True])
        self.assertNotIn("tenant", self.esker("info", self.file).out)

    def test_rows_of_tenants_are_reachable_by_who_knows_the_name(self):
        self.export()
        answer = self.esker("import", "copy", self.file, "--create", *SMALL)
        self.assertIn("--namespace", answer.err)
        self.assertRegex(answer.out, r"(?m)^tokens +468 reachable, 188 unreachable$")
        self.assertEqual(self.session("ls", "copy")["sessions"], [])
        wrong = self.bring("copy", None, "--namespace", "tenant")
        self.assertEqual((wrong["unreachable_tokens"], wrong["unreachable_sessions"]), (188, 1))
        done = self.bring("copy", None, "--namespace", "other", "--namespace", "tenant-of-ours")
        self.assertEqual((done["unreachable_tokens"], done["sessions"]), (0, 1))
        self.assert_same_rows("copy", "--namespace", "tenant-of-ours")
        self.assertTrue(self.diff("chat", "copy")["equal"])

    def test_only_unreachable_rows_are_the_answer_no(self):
        self.export("--session", "theirs")
        self.assertEqual(self.bring("copy", code=1)["reachable_tokens"], 0)

    def test_diff_finds_tenants_by_the_names_that_a_side_knows(self):
        self.export()
        self.assertTrue(self.diff("chat", self.file)["equal"])
        again = self.dir / "again.esnap"
        self.export(file=again)
        found = self.diff(again, self.file, code=1)  # two salts: nobody can tell
        self.assertEqual((found["tokens_only_in_a"], found["tokens_only_in_b"]), (188, 188))
        self.assertTrue(self.diff(again, self.file, "--namespace", "tenant-of-ours")["equal"])
