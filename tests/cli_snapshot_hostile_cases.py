"""Cases of cli_test.py on snapshots: damage, full disks, closed pipes, kills, things in the way."""

import os
import signal
import subprocess
import time

from cli_case import BINARY, HANG_S, ROOT, SLOT
from cli_snapshot_case import SMALL, SnapshotCase

__all__ = ["SnapshotDamageTest", "SnapshotEndTest"]

SMOL = ROOT / "tests" / "golden" / "slots" / "smollm2-f16.slot"


class SnapshotDamageTest(SnapshotCase):
    def setUp(self):
        super().setUp()
        self.keep()
        self.export()
        self.data = self.file.read_bytes()
        self.bad = self.dir / "bad.esnap"

    def assert_found(self, data, what):
        """`verify` finds the damage, `import` refuses it, and what it stored before is sound."""
        self.bad.write_bytes(data)
        with self.subTest(what=what):
            found = self.document("verify", self.bad, code=1)
            self.assertFalse(found["ok"])
            self.assertIn("bad.esnap", str(found["damage"]))
            self.refused("import", "copy", self.bad)
            self.assertTrue(self.document("verify", "copy")["ok"])

    def test_a_truncated_file_is_found_wherever_it_ends(self):
        self.create("copy")
        for at in [*range(0, 300, 40), *range(300, len(self.data), len(self.data) // 25),
                   len(self.data) - 64, len(self.data) - 1]:
            if at == 0:
                continue
            self.assert_found(self.data[:at], f"ends at {at}")
        self.assert_found(self.data + b"\0" * 8, "goes on")
        self.document("import", "copy", self.file)
        self.assert_same_rows("copy")

    def test_a_flipped_bit_is_found_wherever_it_is(self):
        self.create("copy")
        for at in [*range(0, 256, 24), *range(256, len(self.data), len(self.data) // 30)]:
            flipped = bytearray(self.data)
            flipped[at] ^= 1 << at % 8
            self.bad.write_bytes(flipped)
            with self.subTest(at=at):
                code = self.esker("verify", self.bad, "--json", code=self.code_of(at, flipped)).code
                self.assertNotEqual(code, 0)
                self.assertNotEqual(self.code("import", "copy", self.bad), 0)
        self.assertTrue(self.document("verify", "copy")["ok"])
        self.document("import", "copy", self.file)
        self.assert_same_rows("copy")

    def code_of(self, at, data):
        """Damage is the answer no; a version or a feature that is too new is another answer."""
        newer = 12 <= at < 24 and data != self.data
        return 5 if newer else 1

    def code(self, *words):
        return subprocess.run([BINARY, *map(str, words)], env=self.env, cwd=self.dir,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=HANG_S).returncode

    def test_damage_in_a_stream_is_found_too(self):
        flipped = bytearray(self.data)
        flipped[len(flipped) // 2] ^= 4
        self.assertFalse(self.document("verify", "-", code=1, stdin=bytes(flipped))["ok"])
        self.assertFalse(self.document("verify", "-", code=1, stdin=self.data[:-40])["ok"])
        self.assertTrue(self.document("verify", "-", stdin=self.data)["ok"])
        self.create("copy")
        self.refused("import", "copy", "-", stdin=bytes(flipped))
        self.refused("import", "copy", "-", stdin=self.data[:-40])
        self.assertTrue(self.document("verify", "copy")["ok"])

    def test_info_and_the_others_refuse_what_verify_finds(self):
        self.bad.write_bytes(self.data[:-100])
        for words in (("info", self.bad), ("diff", self.bad, "chat"), ("diff", "chat", self.bad),
                      ("repack", self.bad, "-o", "x"), ("merge", self.file, self.bad, "-o", "x")):
            self.assertIn("bad.esnap", self.refused(*words))
        self.assertFalse((self.dir / "x").exists())

    def test_other_files_are_no_snapshots(self):
        for words in (("repack", "-o", "x"), ("diff", "chat"), ("import", "chat", "--format",
                                                                 "esnap")):
            for file in (SLOT, self.dir, "/dev/null", self.dir / "nowhere"):
                with self.subTest(words=words, file=file):
                    self.assertNotIn(self.code(*words, file), (0, 1))

    def test_damaged_blocks_are_left_out_of_an_export_and_named(self):
        (segment,) = (self.home / "chat" / "segments").iterdir()
        rows = bytearray(segment.read_bytes())
        needle = SLOT.read_bytes()[-2000:-1900]
        self.assertGreater(rows.find(needle), 0)
        for at in range(len(rows)):
            if rows.startswith(needle, at):
                rows[at] ^= 1
        with segment.open("r+b") as file:
            file.write(rows)
        answer = self.esker("export", "chat", "-o", self.bad, code=1)
        self.assertIn("damaged", answer.err)
        self.assertTrue(self.document("verify", self.bad)["ok"])


class SnapshotEndTest(SnapshotCase):
    def leftovers(self):
        known = {self.home.name, self.other_slot.name, "other.slot", "altered-100.slot"}
        return sorted(path.name for path in self.dir.iterdir() if path.name not in known)

    def test_nothing_is_replaced_without_being_told_to(self):
        self.file.write_text("precious")
        for words in (("export", "chat"), ("export", "chat", "--codec", "raw")):
            self.assertIn("-f", self.refused(*words, "-o", self.file))
        self.refused("export", "chat", "-o", self.dir)
        self.refused("export", "chat", "-o", self.dir / "nowhere" / "x")
        self.assertEqual(self.file.read_text(), "precious")
        self.esker("export", "chat", "-o", self.file, "-f")
        self.assertTrue(self.document("verify", self.file)["ok"])

    def test_a_terminal_gets_no_binary_data(self):
        for words in (("export", "chat", "-"), ("export", "chat", "-o", "-"),
                      ("backup", "chat", "-o", "-")):
            if words[0] == "backup":
                self.keep()
            code, shown = self.on_terminal(*words)
            self.assertEqual(code, 2)
            self.assertIn("terminal", shown)
        code, shown = self.on_terminal("import", "chat", "-")
        self.assertEqual(code, 2)
        self.assertIn("terminal", shown)

    def test_two_things_for_standard_output_are_refused(self):
        self.refused_json("export", "chat", "-")
        self.keep()
        self.refused_json("backup", "chat", "-o", "-")
        self.export()
        self.refused_json("repack", self.file, "-o", "-")

    def refused_json(self, *words):
        answer = self.esker(*words, "--json", code=2)
        self.assertEqual(answer.out, "")
        self.assertIn("standard output", answer.err)

    def test_a_reader_that_goes_away_ends_it_as_a_shell_would(self):
        process = subprocess.Popen([BINARY, "export", "chat", "-", "--codec", "raw"], env=self.env,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(10)
        process.stdout.close()
        self.assertEqual(process.wait(HANG_S), 141)
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()

    def test_a_full_disk_leaves_nothing(self):
        done = self.shell("ulimit -f 8; exec $ESKER export chat --codec raw -o full.esnap", code=2)
        self.assertIn(b"full.esnap", done.stderr)
        self.assertEqual(self.leftovers(), [])

    def test_a_full_store_says_so_and_keeps_what_it_has(self):
        self.load_smol("smol")
        self.export(store="smol")
        report = self.document("import", "tight", self.file, "--create", "--capacity", "2M",
                               "--segment-size", "1M", code=1)
        self.assertGreater(report["refused_blocks"], 0)
        self.assertGreater(report["stored_blocks"], 0)
        self.assertTrue(self.document("verify", "tight")["ok"])

    def load_smol(self, name):
        self.esker("create", name, "--like", SMOL, "--model", "name=smol", "--capacity", "256M",
                   "--segment-size", "16M")
        self.esker("import", name, SMOL, "--model", "name=smol")

    def kill(self, words, sent, delay_s):
        """Runs a command, sends it a signal after a while, and returns its exit code."""
        process = subprocess.Popen([BINARY, *map(str, words)], env=self.env, cwd=self.dir,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay_s)
        process.send_signal(sent)
        return process.wait(HANG_S)

    def test_an_export_that_is_interrupted_leaves_nothing_or_all(self):
        self.load_smol("smol")
        words = ("export", "smol", "--codec", "zstd", "--level", 19, "--threads", 1, "-o",
                 "smol.esnap")
        out = self.dir / "smol.esnap"
        killed = 0
        for i in range(10):
            sent = signal.SIGINT if i % 2 else signal.SIGKILL
            code = self.kill(words, sent, 0.01 * 1.6 ** i)
            with self.subTest(i=i):
                # The signal may also come between the last step, the name, and the exit.
                self.assertIn(code, (0, -sent))
                killed += code != 0
                if code == 0 or out.exists():
                    self.assertTrue(self.document("verify", out)["ok"])
                    out.unlink()
                self.assertEqual(self.leftovers(), [])
        self.assertGreater(killed, 0)

    def test_an_import_that_is_killed_goes_on_where_it_was(self):
        self.load_smol("smol")
        self.export("--codec", "raw", store="smol")
        data = self.file.read_bytes()
        for part in (0.2, 0.5, 0.9):
            process = subprocess.Popen([BINARY, "import", "copy", "-", "--create", "--capacity",
                                        "256M", "--segment-size", "16M"], env=self.env,
                                       stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            process.stdin.write(data[:int(len(data) * part)])
            process.stdin.flush()
            process.kill()
            process.wait(HANG_S)
            process.stdin.close()
            if (self.home / "copy" / "esker").exists():
                self.assertTrue(self.document("verify", "copy")["ok"])
        self.document("import", "copy", self.file, "--create", "--capacity", "256M",
                      "--segment-size", "16M")
        self.assertTrue(self.diff("smol", "copy")["equal"])

    def test_snapshots_are_named_by_any_text(self):
        for name in ("[a,b].esnap", "a b.esnap", "ünï.esnap", "%s.esnap", "-x.esnap"):
            with self.subTest(name=name):
                self.esker("export", "chat", f"--output={name}")
                self.assertTrue(self.document("verify", f"./{name}")["ok"])
                os.unlink(self.dir / name)
        self.assertEqual(self.leftovers(), [])

    def test_a_store_of_the_home_wins_over_a_file_of_that_name(self):
        self.esker("export", "chat", "-o", "chat")
        self.assertIn("uuid", self.document("info", "chat"))
        self.assertIn("id", self.document("info", "./chat"))
        self.document("import", "copy.esnap", "./chat", "--create", *SMALL)
        self.assertIn("uuid", self.document("info", "copy.esnap"))
