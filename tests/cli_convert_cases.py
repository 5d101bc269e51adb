"""Cases of cli_test.py on files of other programs: convert, cat, session files, safetensors.

The files are taken apart here once more, without any code of Esker.
"""

import ast
import dataclasses
import json
import os
import signal
import struct
import subprocess
import time

from cli_case import BINARY, HANG_S, SLOT, SLOT_TOKENS, CliCase
from llama_tool_test import NOFLASH, SLOTS, SMOL, SPLIT, Slot

__all__ = ["ConvertLlamaTest", "ConvertSnapshotTest", "ConvertRefusalTest", "CatTest",
           "SafetensorsTest", "SessionFileTest"]

REAL_SLOT = SLOTS / "smollm2-4.slot"
REAL_SESSION = SLOTS / "smollm2-4.session"
NAME = "support 17"


def session_of(slot, architecture=b"llama"):
    """The session file with the tokens and the cache of a sequence file."""
    data = dataclasses.replace(slot, packed=False).write()
    memory = 12 + 4 * len(slot.tokens)
    return (struct.pack("<2I", 0x6767736E, slot.version + 7) + data[8:memory] +
            struct.pack("<I", len(architecture)) + architecture + data[memory:])


def read_npy(data):
    """(dtype, shape, bytes) of a .npy file of version 1.0."""
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    (length,) = struct.unpack_from("<H", data, 8)
    assert (10 + length) % 64 == 0 and data[9 + length:10 + length] == b"\n"
    head = ast.literal_eval(data[10:10 + length].decode("ascii"))
    assert head["fortran_order"] is False and set(head) == {"descr", "fortran_order", "shape"}
    return head["descr"], head["shape"], data[10 + length:]


SIZES = {"F32": 4, "F16": 2, "BF16": 2, "U8": 1, "I32": 4}


def read_tensors(data):
    """(metadata, {name: (dtype, shape, bytes)}), with all that the format promises checked."""
    (length,) = struct.unpack_from("<Q", data)
    assert length % 8 == 0 and data[8:9] == b"{"
    header = json.loads(data[8:8 + length])
    body = data[8 + length:]
    metadata = header.pop("__metadata__")
    assert all(isinstance(value, str) for value in metadata.values())
    tensors, end = {}, 0
    for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = tensor["data_offsets"]
        assert begin == end, f"{name}: a gap"
        size = SIZES[tensor["dtype"]]
        for extent in tensor["shape"]:
            size *= extent
        assert stop - begin == size, name
        assert begin % SIZES[tensor["dtype"]] == 0, f"{name} is not aligned"
        tensors[name] = (tensor["dtype"], tensor["shape"], body[begin:stop])
        end = stop
    assert end == len(body)
    return metadata, tensors


class ConvertCase(CliCase):
    def setUp(self):
        super().setUp()
        self.tiny = Slot.read(SLOT.read_bytes())

    def put(self, name, data):
        path = self.dir / name
        path.write_bytes(data if isinstance(data, bytes) else data.write())
        return path

    def convert(self, source, name, *words, code=0):
        """The answer, and the bytes that were written."""
        answer = self.document("convert", source, self.dir / name, *words, "-f", code=code)
        path = self.dir / name
        return answer, path.read_bytes() if path.is_file() else None

    def no_leftovers(self):
        self.assertEqual([p.name for p in self.dir.glob(".esker*")], [])

    def snapshot(self, name="chat.esnap", source=SLOT, *words):
        self.convert(source, name, "--model", "name=tiny", *words)
        return self.dir / name


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
        self.assertIn("kv_rot_k", self.refused("convert", old, "never.slot", "--like", like, code=5))
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
        self.assertEqual(self.esker("convert", SLOT, "-", "--to", "llama", "--json", code=2).out, "")

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
        file = self.snapshot("a.esnap", SLOT, "--session", NAME, "--namespace", "lora:7")
        self.assertEqual(self.document("convert", file, "chat", "--to", "store")["tokens"],
                         SLOT_TOKENS)
        listed = self.esker("session", "ls", "chat", "--json").json["sessions"]
        self.assertEqual([(s["name"], s["reusable_tokens"]) for s in listed],
                         [(NAME, SLOT_TOKENS)])
        for words in (("--session", NAME), ()):
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
            if process.returncode == 0:
                (self.dir / "out.esnap").unlink()
            else:
                self.assertEqual(process.returncode, -signal.SIGINT)
            self.assertFalse((self.dir / "out.esnap").exists())
            self.no_leftovers()


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


class CatTest(ConvertCase):
    def cat(self, *words):
        """Standard output as bytes."""
        return subprocess.run([BINARY, "cat", *map(str, words)], env=self.env, cwd=self.dir,
                              capture_output=True, timeout=HANG_S, check=True).stdout

    def test_every_plane_of_every_source_is_the_matrix_of_its_rows(self):
        self.create()
        self.load("chat", SLOT)
        path = self.paths()[0]["path"]
        file = self.snapshot()
        for layer in (0, 1):
            for plane, (_, _, rows) in (("key", self.tiny.keys[layer]),
                                        ("value", self.tiny.values[layer])):
                for source in (("chat", path), ("chat",), (file,), (SLOT,)):
                    data = self.cat(*source, "--layer", layer, "--plane", plane)
                    self.assertEqual(read_npy(data), ("<f2", (SLOT_TOKENS, 64), rows))

    def test_a_range_a_prompt_or_a_session_is_a_part(self):
        self.create()
        self.document("import", "chat", SLOT, "--model", "name=tiny", "--session", NAME)
        rows = self.tiny.values[1][2]
        ids = self.put("ids.json", json.dumps(self.tiny.tokens).encode())
        for words in (("--session", NAME), ("--ids", ids)):
            for text, begin, end in (("3:9", 3, 9), (":1", 0, 1), ("187:", 187, 188),
                                     ("30:5000", 30, 188)):
                out = self.dir / "part.npy"
                answer = self.document("cat", "chat", "--layer", 1, "--plane", "value", *words,
                                       "--range", text, "-o", out, "-f")
                self.assertEqual((answer["first_token"], answer["tokens"], answer["numpy_dtype"]),
                                 (begin, end - begin, "<f2"))
                self.assertEqual(read_npy(out.read_bytes()),
                                 ("<f2", (end - begin, 64), rows[128 * begin:128 * end]))

    def test_types_that_numpy_lacks_are_named(self):
        for kind, dtype, numpy, size in ((30, "bf16", "<u2", 2), (0, "f32", "<f4", 4),
                                         (8, "q8_0", "|u1", 1)):
            row = 68 if dtype == "q8_0" else 128
            planes = [(kind, row, rows[:row * 20]) for _, _, rows in self.tiny.keys]
            slot = dataclasses.replace(self.tiny.first(20), keys=planes, values=planes)
            path = self.put("kind.slot", slot)
            out = self.dir / "kind.npy"
            answer = self.document("cat", path, "--layer", 0, "--plane", "key", "-o", out, "-f")
            self.assertEqual((answer["dtype"], answer["numpy_dtype"]), (dtype, numpy))
            self.assertEqual(read_npy(out.read_bytes()), (numpy, (20, row // size), planes[0][2]))

    def test_the_planes_of_a_cache_with_two_types_have_their_own(self):
        values = [(8, 68, rows[:68 * 20]) for _, _, rows in self.tiny.values]
        path = self.put("mixed.slot", dataclasses.replace(self.tiny.first(20), values=values))
        self.assertEqual(read_npy(self.cat(path, "--layer", 1, "--plane", "key"))[:2],
                         ("<f2", (20, 64)))
        self.assertEqual(read_npy(self.cat(path, "--layer", 1, "--plane", "value")),
                         ("|u1", (20, 68), values[1][2]))

    def test_numpy_reads_it_where_it_is_installed(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        out = self.dir / "k.npy"
        self.esker("cat", SLOT, "--layer", 0, "--plane", "key", "-o", out)
        matrix = numpy.load(out)
        self.assertEqual((matrix.shape, matrix.dtype), ((SLOT_TOKENS, 64), numpy.float16))
        self.assertEqual(matrix.tobytes(), self.tiny.keys[0][2])

    def test_what_is_not_there_is_refused(self):
        self.assertIn("0 to 1", self.refused("cat", SLOT, "--layer", 2, "--plane", "key"))
        for text in ("188:", "5:5", "9:3", "x:3", "-1:3", "3", "1:2:3", "4294967296:"):
            self.refused("cat", SLOT, "--layer", 0, "--plane", "key", f"--range={text}")
        self.refused("cat", SLOT, "--layer", 0)
        self.refused("cat", SLOT, "--layer", 0, "--plane", "both")
        self.refused("cat", SLOT, "--layer", "4294967296", "--plane", "key")
        self.refused("cat", SLOT, "9f3c", "--layer", 0, "--plane", "key")
        self.refused("cat", SLOT, "--layer", 0, "--plane", "key", "--json")
        self.refused("cat", "nowhere", "--layer", 0, "--plane", "key", code=3)

    def test_a_damaged_block_is_an_error_and_no_file(self):
        self.create()
        self.load("chat", SLOT)
        row = self.tiny.keys[1][2][128 * 100:128 * 101]
        for segment in (self.home / "chat" / "segments").iterdir():
            data = bytearray(segment.read_bytes())
            at = data.find(row)
            if at >= 0:
                data[at] ^= 1
                with open(segment, "r+b") as file:
                    file.write(data)
        self.esker("cat", "chat", "--layer", 1, "--plane", "key", "-o", self.dir / "k.npy", code=2)
        self.assertFalse((self.dir / "k.npy").exists())
        done = subprocess.run([BINARY, "cat", "chat", "--layer", "1", "--plane", "key"],
                              env=self.env, capture_output=True, timeout=HANG_S)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, b"")


class SafetensorsTest(ConvertCase):
    def check(self, data, slot, **metadata):
        found, tensors = read_tensors(data)
        count = len(slot.tokens)
        self.assertEqual(found["tokens"], str(count))
        for key, value in metadata.items():
            self.assertEqual(found[key.replace("__", ".")], value)
        self.assertEqual(tensors.pop("input_ids"),
                         ("I32", [count], struct.pack(f"<{count}i", *slot.tokens)))
        for layer, (_, size, rows) in enumerate(slot.keys):
            self.assertEqual(tensors.pop(f"model.layers.{layer}.key"), ("F16", [count, size // 2],
                                                                         rows))
        for layer, (_, size, rows) in enumerate(slot.values):
            self.assertEqual(tensors.pop(f"model.layers.{layer}.value"),
                             ("F16", [count, size // 2], rows))
        self.assertEqual(tensors, {})

    def test_a_prefix_of_a_store_is_exported(self):
        self.create()
        self.document("import", "chat", SLOT, "--model", "name=tiny", "--session", NAME)
        out = self.dir / "a.safetensors"
        path = self.paths()[0]["path"]
        for words, count in (((path,), 188), (("--session", NAME), 188),
                             (("--session", NAME, "--first", 70), 70)):
            answer = self.document("export", "chat", *words, "--format", "safetensors", "-o", out,
                                   "-f")
            self.assertEqual((answer["tokens"], answer["bytes"]), (count, out.stat().st_size))
            self.check(out.read_bytes(), self.tiny.first(count), dtype="f16", model__name="tiny",
                       path=path)
        none = self.put("none.json", b"[1, 2]")
        self.assertEqual(self.document("export", "chat", "--ids", none, "--format", "safetensors",
                                       "-o", self.dir / "none", code=1)["tokens"], 0)
        self.assertFalse((self.dir / "none").exists())

    def test_snapshots_and_files_of_llama_cpp_become_tensors(self):
        _, data = self.convert(self.snapshot(), "a.safetensors")
        self.check(data, self.tiny, model__name="tiny")
        _, data = self.convert(NOFLASH, "b.safetensors")
        self.check(data, Slot.read(NOFLASH.read_bytes()))
        piped = subprocess.run([BINARY, "convert", SLOT, "-", "--to", "safetensors"], env=self.env,
                               capture_output=True, timeout=HANG_S, check=True)
        self.check(piped.stdout, self.tiny)

    def test_other_types_keep_their_bytes_and_their_alignment(self):
        keys = [(30, 66, rows[:66 * 7]) for _, _, rows in self.tiny.keys]
        values = [(8, 34, rows[:34 * 7]) for _, _, rows in self.tiny.values]
        path = self.put("k.slot", dataclasses.replace(self.tiny.first(7), keys=keys, values=values))
        _, data = self.convert(path, "a.safetensors")
        metadata, tensors = read_tensors(data)
        self.assertEqual(metadata["dtype"], "k:bf16,v:q8_0")
        self.assertEqual(tensors["model.layers.1.key"], ("BF16", [7, 33], keys[1][2]))
        self.assertEqual(tensors["model.layers.1.value"], ("U8", [7, 34], values[1][2]))

    def test_the_library_reads_it_where_it_is_installed(self):
        try:
            from safetensors.numpy import load_file
        except ImportError:
            self.skipTest("safetensors is not installed")
        self.convert(SLOT, "a.safetensors")
        tensors = load_file(self.dir / "a.safetensors")
        self.assertEqual(tensors["input_ids"].tolist(), self.tiny.tokens)
        self.assertEqual(tensors["model.layers.1.value"].tobytes(), self.tiny.values[1][2])


class SessionFileTest(ConvertCase):
    def test_import_takes_session_files_and_export_writes_them(self):
        self.create()
        session = self.put("in.session", session_of(self.tiny))
        answer = self.load("chat", session)
        self.assertEqual((answer["tokens"], answer["new_tokens"]), (SLOT_TOKENS, SLOT_TOKENS))
        self.assertEqual(self.load("chat", SLOT)["new_tokens"], 0)
        path = self.paths()[0]["path"]
        out = self.dir / "out.session"
        for words in (("--like", session), ("--like", session, "--format", "llama-session"),
                      ("--like", SLOT, "--format", "llama-session", "--arch", "llama")):
            self.esker("export", "chat", path, *words, "-o", out, "-f")
            self.assertEqual(out.read_bytes(), session.read_bytes())
        self.esker("export", "chat", path, "--like", SLOT, "-o", out, "-f")
        self.assertEqual(out.read_bytes(), SLOT.read_bytes())
        self.assertIn("--arch", self.refused("export", "chat", path, "--like", SLOT, "--format",
                                             "llama-session", "-o", self.dir / "never"))
        self.assertFalse((self.dir / "never").exists())

    def test_a_store_is_made_like_a_session_file(self):
        self.esker("create", "smol", "--like", REAL_SESSION, "--capacity", "64M")
        self.assertEqual(self.document("import", "smol", "-",
                                       stdin=REAL_SESSION.read_bytes())["new_tokens"], 4)
        self.assertEqual(self.matched([42185, 216, 32, 42], "smol"), 4)
