"""Cases of cli_test.py on planes and tensors for Python, and on session files of llama.cpp."""

import ast
import dataclasses
import json
import struct
import subprocess

from cli_case import BINARY, HANG_S, SLOT, SLOT_TOKENS
from cli_convert_case import NAME, REAL_SESSION, ConvertCase, session_of
from llama_tool_test import NOFLASH, Slot

__all__ = ["CatTest", "SafetensorsTest", "SessionFileTest"]


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

    def test_what_is_not_there_is_refused(self):
        self.assertIn("0 to 1", self.refused("cat", SLOT, "--layer", 2, "--plane", "key"))
        for text in ("188:", "5:5", "9:3", "x:3", "-1:3", "3", "1:2:3", "4294967296:"):
            self.refused("cat", SLOT, "--layer", 0, "--plane", "key", f"--range={text}")
        self.refused("cat", SLOT, "--layer", 0)
        self.refused("cat", SLOT, "--layer", 0, "--plane", "both")
        self.refused("cat", SLOT, "--layer", "4294967296", "--plane", "key")
        self.refused("cat", SLOT, "9f3c", "--layer", 0, "--plane", "key")
        self.esker("cat", SLOT, "--layer", 0, "--plane", "key", "--json", code=2)
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
            known = {"path": path} if count == 188 else {}
            self.check(out.read_bytes(), self.tiny.first(count), dtype="f16", model__name="tiny",
                       **known)
        none = self.put("none.json", b"[1, 2]")
        self.assertEqual(self.document("export", "chat", "--ids", none, "--format", "safetensors",
                                       "-o", self.dir / "none", code=1)["tokens"], 0)
        self.assertFalse((self.dir / "none").exists())
        for words in (("--format", "safetensors", "--like", SLOT), ("--like", SLOT, "--arch", "x")):
            self.refused("export", "chat", path, *words, "-o", self.dir / "never")
        self.assertFalse((self.dir / "never").exists())

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
