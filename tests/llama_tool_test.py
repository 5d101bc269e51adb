#!/usr/bin/env python3
"""Import and export of llama.cpp files with the command `esker`. ESKER_BIN names the binary.

The files are taken apart and put together here once more, without any code of Esker.
"""

import dataclasses
import json
import struct
import subprocess
import unittest

from cli_case import BINARY, HANG_S, ROOT, CliCase

SLOTS = ROOT / "tests" / "golden" / "slots"
TINY = SLOTS / "dense-tiny.slot"
SMOL = SLOTS / "smollm2-f16.slot"
NOFLASH = SLOTS / "smollm2-noflash-16.slot"
SPLIT = SLOTS / "smollm2-q8-split.slot"


@dataclasses.dataclass
class Slot:
    """A plain sequence file: tokens, and per layer the K and V rows as one byte string each."""

    version: int
    streams: int
    packed: bool
    transposed: bool
    rotation: tuple
    tokens: list
    keys: list  # of (type, row bytes, rows)
    values: list

    @staticmethod
    def read(data):
        magic, version, words = struct.unpack_from("<3I", data)
        assert magic == 0x67677371
        head = list(struct.unpack_from(f"<{words}i", data, 12))
        packed = head[0] == -1
        tokens = head[3:3 + head[2]] if packed else head
        at = 12 + 4 * words
        (streams,) = struct.unpack_from("<I", data, at)
        at += 4
        empty = 0
        while struct.unpack_from("<I", data, at) == (0,):
            empty, at = empty + 1, at + 4
        (cells,) = struct.unpack_from("<I", data, at)
        assert cells == len(tokens)
        positions = struct.unpack_from("<" + "i8x" * cells, data, at + 4)
        assert list(positions) == list(range(cells))
        at += 4 + 12 * cells
        transposed, layers = struct.unpack_from("<2I", data, at)
        at += 8
        rotation = struct.unpack_from("<2I", data, at) if version >= 4 else (0, 0)
        at += 8 if version >= 4 else 0
        slot = Slot(version, streams, packed, bool(transposed), rotation, tokens, [], [])
        for layer in range(2 * layers):
            at = slot.read_plane(data, at, values=layer >= layers)
        assert data[at:] == struct.pack("<I", 0) * (streams - empty - 1)
        return slot

    def read_plane(self, data, at, values):
        count = len(self.tokens)
        if values and self.transposed:
            kind, element, channels = struct.unpack_from("<3I", data, at)
            plane = data[at + 12:at + 12 + element * channels * count]
            rows = turned(plane, channels, count, element)
            row_bytes = element * channels
        else:
            kind, row_bytes = struct.unpack_from("<IQ", data, at)
            rows = data[at + 12:at + 12 + row_bytes * count]
        (self.values if values else self.keys).append((kind, row_bytes, rows))
        return at + 12 + row_bytes * count

    def first(self, count):
        def cut(planes):
            return [(kind, size, rows[:size * count]) for kind, size, rows in planes]
        return dataclasses.replace(self, tokens=self.tokens[:count], keys=cut(self.keys),
                                   values=cut(self.values))

    def write(self):
        count = len(self.tokens)
        words = [-1, 1, count, *self.tokens, 0] if self.packed else self.tokens
        out = struct.pack(f"<3I{len(words)}i", 0x67677371, self.version, len(words), *words)
        out += struct.pack("<2I", self.streams, count)
        out += b"".join(struct.pack("<3i", position, 1, 0) for position in range(count))
        out += struct.pack("<2I", self.transposed, len(self.keys))
        out += struct.pack("<2I", *self.rotation) if self.version >= 4 else b""
        for kind, size, rows in self.keys:
            out += struct.pack("<IQ", kind, size) + rows
        for kind, size, rows in self.values:
            if self.transposed:
                out += struct.pack("<3I", kind, 2, size // 2) + turned(rows, count, size // 2, 2)
            else:
                out += struct.pack("<IQ", kind, size) + rows
        return out + struct.pack("<I", 0) * (self.streams - 1)


def turned(data, rows, columns, element):
    """A matrix of `element` bytes per entry, transposed."""
    entries = [data[i:i + element] for i in range(0, len(data), element)]
    return b"".join(b"".join(entries[column::columns]) for column in range(columns))


class SlotCase(CliCase):
    def setUp(self):
        super().setUp()
        self.tiny = Slot.read(TINY.read_bytes())

    def put(self, name, slot):
        path = self.dir / name
        path.write_bytes(slot.write())
        return path

    def ids(self, tokens):
        path = self.dir / "ids.json"
        path.write_text(json.dumps(tokens))
        return path

    def export(self, *words, like=TINY, code=0):
        out = self.dir / "out.slot"
        answer = self.document("export", "chat", *words, "--like", like, "-o", out, "-f", code=code)
        return answer, out

    def make(self, like=TINY, *more):
        self.esker("create", "chat", "--like", like, "--capacity", "64M", *more)


class OwnReadingTest(unittest.TestCase):
    def test_our_own_reading_of_the_real_files_is_exact(self):
        for path in (TINY, SMOL, NOFLASH):
            self.assertEqual(Slot.read(path.read_bytes()).write(), path.read_bytes())


class ImportTest(SlotCase):
    def test_a_conversation_that_grew_stores_only_what_is_new(self):
        self.make()
        first = self.load_plain(self.put("first.slot", self.tiny.first(70)))
        self.assertEqual((first["tokens"], first["new_tokens"], first["new_blocks"]), (70, 70, 3))
        whole = self.load_plain(TINY)
        self.assertEqual((whole["tokens"], whole["stored_tokens"], whole["new_tokens"]),
                         (188, 188, 118))
        self.assertEqual(whole["new_blocks"], 4)  # the last one of the first file is superseded
        self.assertEqual(self.load_plain(TINY)["new_tokens"], 0)
        self.assertEqual(self.load_plain(TINY)["new_blocks"], 0)
        self.assertIn("0 of 188 tokens are new", self.esker("import", "chat", TINY).out)

    def load_plain(self, path, *more):
        return self.document("import", "chat", path, *more)

    def test_every_kind_of_file_of_one_text_stores_the_same_rows(self):
        for version in (3, 4):
            for packed in (False, True):
                for transposed in (False, True):
                    for streams in (1, 4):
                        slot = dataclasses.replace(self.tiny, version=version, packed=packed,
                                                   transposed=transposed, streams=streams)
                        with self.subTest(version=version, packed=packed, transposed=transposed,
                                          streams=streams):
                            space = f"{version}{packed}{transposed}{streams}"
                            path = self.put("kind.slot", slot)
                            self.make() if not self.home.exists() else None
                            self.load_plain(path, "--namespace", space)
                            ids = self.ids(slot.tokens)
                            _, out = self.export("--ids", ids, "--namespace", space)
                            self.assertEqual(out.read_bytes(), TINY.read_bytes())
                            _, out = self.export("--ids", ids, "--namespace", space, like=path)
                            self.assertEqual(out.read_bytes(), path.read_bytes())

    def test_a_file_can_come_through_a_pipe(self):
        self.make()
        answer = self.document("import", "chat", "-", stdin=TINY.read_bytes())
        self.assertEqual(answer["new_tokens"], 188)
        with open(TINY, "rb") as file:
            again = subprocess.run([BINARY, "import", "chat", "-", "--json"], stdin=file,
                                   env=self.env, capture_output=True, timeout=HANG_S, check=True)
        self.assertEqual(json.loads(again.stdout)["new_tokens"], 0)

    def test_namespaces_keep_texts_apart(self):
        self.make()
        self.assertEqual(self.load_plain(TINY, "--namespace", "a")["new_tokens"], 188)
        self.assertEqual(self.load_plain(TINY, "--namespace", "b")["new_tokens"], 188)
        self.assertEqual(self.load_plain(TINY, "--namespace", "a")["new_tokens"], 0)
        ids = self.ids(self.tiny.tokens)
        self.export("--ids", ids, code=1)
        self.assertEqual(self.export("--ids", ids, "--namespace", "b")[0]["tokens"], 188)

    def test_another_geometry_is_refused_and_nothing_is_stored(self):
        self.make()
        text = self.refused("import", "chat", SMOL, code=5)
        self.assertIn("smollm2-f16.slot", text)
        self.assertIn("layers", text)
        other = dataclasses.replace(self.tiny, keys=[(30, *rest) for _, *rest in self.tiny.keys],
                                    values=[(30, *rest) for _, *rest in self.tiny.values])
        self.assertIn("bf16", self.refused("import", "chat", self.put("bf16.slot", other), code=5))
        self.assertEqual(self.paths(), [])

    def test_a_file_that_is_cut_off_stores_nothing(self):
        self.make()
        data = TINY.read_bytes()
        for length in (0, 3, 11, 400, 3000, len(data) // 2, len(data) - 1):
            path = self.dir / "cut.slot"
            path.write_bytes(data[:length])
            self.assertIn("cut.slot", self.refused("import", "chat", path))
        self.assertEqual(self.paths(), [])

    def test_rotated_rows_go_only_into_a_store_made_for_them(self):
        quantised = [(8, 68, rows[:68 * 16]) for _, _, rows in self.tiny.keys]
        slot = dataclasses.replace(self.tiny.first(16), keys=quantised, values=quantised,
                                   rotation=(64, 64))
        rotated = self.put("rotated.slot", slot)
        plain = self.put("plain.slot", dataclasses.replace(slot, rotation=(0, 0)))
        self.make(rotated)
        self.assertEqual(self.load_plain(rotated)["new_tokens"], 16)
        self.assertIn("kv_rot_k", self.refused("import", "chat", plain, code=5))
        _, out = self.export("--ids", self.ids(slot.tokens), like=rotated)
        self.assertEqual(out.read_bytes(), rotated.read_bytes())
        self.assertIn("kv_rot_k", self.refused("export", "chat", "--ids", self.ids(slot.tokens),
                                               "--like", plain, "-o", "never.slot", code=5))

    def test_a_model_file_is_the_store_s_identity(self):
        for name, content in (("a.gguf", b"GGUF one"), ("b.gguf", b"GGUF two"), ("no", b"none")):
            (self.dir / name).write_bytes(content)
        self.make(TINY, "--model-file", "a.gguf")
        self.esker("import", "chat", TINY, "--model-file", "a.gguf")
        text = self.refused("import", "chat", TINY, "--model-file", "b.gguf", code=5)
        self.assertIn("weights is 'xxh3-128:", text)
        self.refused("import", "chat", TINY, code=5)
        self.assertIn("GGUF", self.refused("import", "chat", TINY, "--model-file", "no"))

    def test_many_imports_at_once_store_every_block_once(self):
        self.make()
        running = [subprocess.Popen([BINARY, "import", "chat", TINY, "--json"], env=self.env,
                                    stdout=subprocess.PIPE) for _ in range(6)]
        for process in running:
            answer = json.loads(process.communicate(timeout=HANG_S)[0])
            self.assertEqual(process.returncode, 0)
            self.assertEqual(answer["stored_tokens"], 188)
        self.assertEqual(self.document("stat", "chat")["blocks_ready"], 6)


class ExportTest(SlotCase):
    def setUp(self):
        super().setUp()
        self.make()
        self.esker("import", "chat", TINY)

    def test_any_prefix_is_the_file_that_ends_there(self):
        ids = self.ids(self.tiny.tokens)
        for count in (1, 31, 32, 33, 100, 187, 188):
            answer, out = self.export("--ids", ids, "--first", count)
            expected = self.tiny.first(count).write()
            self.assertEqual((answer["tokens"], answer["bytes"]), (count, len(expected)))
            self.assertEqual(out.read_bytes(), expected)

    def test_a_text_that_leaves_the_path_gets_what_it_shares(self):
        ids = self.ids([*self.tiny.tokens[:80], 7, 7, 7])
        answer, out = self.export("--ids", ids)
        self.assertGreaterEqual(answer["tokens"], 64)
        self.assertLessEqual(answer["tokens"], 80)
        self.assertEqual(answer["asked_tokens"], 83)
        self.assertEqual(out.read_bytes(), self.tiny.first(answer["tokens"]).write())
        said = self.esker("export", "chat", "--ids", ids, "--like", TINY, "-o", "short.slot").err
        self.assertIn("83 tokens were asked for", said)

    def test_a_path_can_be_cut_and_can_be_too_short(self):
        path = self.paths()[0]["path"]
        answer, out = self.export(path, "--first", 50)
        self.assertEqual(answer["tokens"], 50)
        self.assertEqual(out.read_bytes(), self.tiny.first(50).write())
        answer, _ = self.export(path, "--first", 5000)
        self.assertEqual((answer["tokens"], answer["asked_tokens"]), (188, 5000))

    def test_nothing_stored_is_exit_1_and_leaves_no_file(self):
        answer, out = self.export("--ids", self.ids([1, 2, 3]), code=1)
        self.assertEqual(answer["tokens"], 0)
        self.assertFalse(out.exists())
        piped = self.esker("export", "chat", "--ids", self.ids([1]), "--like", TINY, "-o", "-",
                           code=1)
        self.assertEqual(piped.out, "")

    def test_an_existing_file_stays_without_force(self):
        (self.dir / "mine").write_text("precious")
        path = self.paths()[0]["path"]
        self.assertIn("-f", self.refused("export", "chat", path, "--like", TINY, "-o", "mine"))
        self.assertEqual((self.dir / "mine").read_text(), "precious")
        self.esker("export", "chat", path, "--like", TINY, "-o", "mine", "-f")
        self.assertEqual((self.dir / "mine").read_bytes(), TINY.read_bytes())
        self.assertEqual([p.name for p in self.dir.glob(".esker*")], [])

    def test_json_and_the_file_do_not_share_standard_output(self):
        path = self.paths()[0]["path"]
        self.esker("export", "chat", path, "--like", TINY, "-o", "-", "--json", code=2)

    def test_a_like_file_of_another_cache_is_refused(self):
        path = self.paths()[0]["path"]
        self.refused("export", "chat", path, "--like", SMOL, "-o", "never.slot", code=5)
        self.assertFalse((self.dir / "never.slot").exists())

    def test_a_server_without_flash_attention_gets_its_layout(self):
        self.esker("create", "smol", "--like", SMOL, "--capacity", "64M")
        self.esker("import", "smol", NOFLASH)
        noflash = Slot.read(NOFLASH.read_bytes())
        path = self.paths("smol")[0]["path"]
        self.esker("export", "smol", path, "--like", SMOL, "-o", "flash.slot")
        flash = Slot.read((self.dir / "flash.slot").read_bytes())
        self.assertFalse(flash.transposed)
        self.assertEqual((flash.keys, flash.values), (noflash.keys, noflash.values))
        self.esker("export", "smol", path, "--like", NOFLASH, "-o", "back.slot")
        self.assertEqual((self.dir / "back.slot").read_bytes(), NOFLASH.read_bytes())

    def test_a_server_with_several_slots_gets_a_file_of_its_kind(self):
        self.esker("create", "split", "--like", SPLIT, "--capacity", "64M")
        self.esker("import", "split", SPLIT)
        path = self.paths("split")[0]["path"]
        self.esker("export", "split", path, "--like", SPLIT, "-o", "back.slot")
        back = Slot.read((self.dir / "back.slot").read_bytes())
        self.assertEqual((back.streams, back.rotation), (3, (64, 64)))
        self.assertEqual(back, Slot.read(SPLIT.read_bytes()))

    def test_a_damaged_block_is_not_exported(self):
        row = self.tiny.keys[1][2][128 * 100:128 * 101]
        hit = 0
        for segment in (self.home / "chat" / "segments").iterdir():
            data = bytearray(segment.read_bytes())
            at = data.find(row)
            if at >= 0:
                data[at] ^= 1
                with open(segment, "r+b") as file:
                    file.write(data)
                hit += 1
        self.assertEqual(hit, 1)
        answer, out = self.export("--ids", self.ids(self.tiny.tokens))
        self.assertEqual(answer["tokens"], 96)
        self.assertEqual(out.read_bytes(), self.tiny.first(96).write())


class SessionTest(SlotCase):
    def setUp(self):
        super().setUp()
        self.make()

    def keep(self, path, *more):
        return self.document("import", "chat", path, "--session", "a chat", *more)

    def test_a_session_comes_out_as_the_file_that_went_in(self):
        self.keep(TINY)
        answer, out = self.export("--session", "a chat")
        self.assertEqual(out.read_bytes(), TINY.read_bytes())
        self.assertEqual((answer["session"], answer["tokens"], answer["asked_tokens"]),
                         ("a chat", 188, 188))
        answer, out = self.export("--session", "a chat", "--first", 50)
        self.assertEqual(out.read_bytes(), self.tiny.first(50).write())

    def test_a_chat_that_grows_token_by_token_comes_out_exactly(self):
        stored = 0
        for count in (1, 2, 31, 32, 33, 64, 65, 100, 187, 188):
            answer = self.keep(self.put("grown.slot", self.tiny.first(count)))
            self.assertEqual((answer["common_tokens"], answer["stored_tokens"]), (stored, count))
            self.assertEqual(answer["session"]["reusable_tokens"], count)
            _, out = self.export("--session", "a chat")
            self.assertEqual(out.read_bytes(), self.tiny.first(count).write())
            stored = count
        self.assertTrue(self.document("verify", "chat")["ok"])

    def test_an_answer_that_is_tried_again_replaces_the_first(self):
        self.keep(TINY)
        for common in (150, 96, 40, 0):
            tokens = [*self.tiny.tokens[:common], *(t + 1 for t in self.tiny.tokens[common:170])]
            retry = dataclasses.replace(self.tiny.first(170), tokens=tokens)
            answer = self.keep(self.put("retry.slot", retry))
            self.assertEqual(answer["stored_tokens"], 170)
            _, out = self.export("--session", "a chat")
            self.assertEqual(out.read_bytes(), retry.write())
            self.keep(TINY)
        _, out = self.export("--session", "a chat")
        self.assertEqual(out.read_bytes(), TINY.read_bytes())
        self.assertTrue(self.document("verify", "chat")["ok"])

    def test_a_session_through_a_pipe_and_in_a_namespace(self):
        self.document("import", "chat", "-", "--session", "a chat", "--namespace", "tenant",
                      stdin=TINY.read_bytes())
        piped = subprocess.run([BINARY, "export", "chat", "--session", "a chat", "--like", TINY,
                                "-o", "-"], env=self.env, capture_output=True, timeout=HANG_S)
        self.assertEqual(piped.stdout, TINY.read_bytes())
        self.assertIn(b"188 of 188", piped.stderr)
        self.export("--ids", self.ids(self.tiny.tokens), code=1)

    def test_what_is_left_of_a_session_is_exported_and_the_rest_is_told(self):
        self.keep(TINY)
        other = dataclasses.replace(self.tiny, tokens=[*self.tiny.tokens[:96],
                                                       *(t + 1 for t in self.tiny.tokens[96:])])
        self.document("import", "chat", self.put("other.slot", other), "--session", "other")
        path = next(p["path"] for p in self.paths() if p["sessions"] == ["a chat"])
        self.esker("rm", "chat", path)
        answer, out = self.export("--session", "a chat")
        self.assertEqual((answer["tokens"], answer["asked_tokens"]), (96, 188))
        self.assertEqual(out.read_bytes(), self.tiny.first(96).write())
        said = self.esker("export", "chat", "--session", "a chat", "--like", TINY, "-o", "-f.slot")
        self.assertIn("exported 96 of 188", said.out)
        self.esker("evict", "chat", "--to", "0")
        answer, out = self.export("--session", "a chat", code=1)
        self.assertEqual(answer["tokens"], 0)
        self.assertEqual(self.keep(TINY)["new_tokens"], 188)
        _, out = self.export("--session", "a chat")
        self.assertEqual(out.read_bytes(), TINY.read_bytes())

    def test_one_prefix_at_a_time(self):
        self.keep(TINY)
        path = self.paths()[0]["path"]
        ids = self.ids(self.tiny.tokens)
        for words in ((path, "--session", "a chat"), ("--ids", ids, "--session", "a chat"),
                      ("--session", "a chat", "--namespace", "x"), ("--session", "")):
            self.refused("export", "chat", *words, "--like", TINY, "-o", "never.slot")
        self.assertFalse((self.dir / "never.slot").exists())


if __name__ == "__main__":
    unittest.main()
