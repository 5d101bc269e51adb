"""Cases of cli_test.py on the cold tier: create --cold, freeze, thaw."""

import json

from cli_case import SLOT, SLOT_TOKENS, CliCase

__all__ = ["ColdTest"]


class ColdTest(CliCase):
    def cold(self):
        """Two paths of nine blocks, all of them frozen."""
        self.filled("chat", "--cold", "4M")
        self.prompt = self.dir / "ids.json"
        self.prompt.write_text(json.dumps(self.ids))
        return self.document("freeze", "chat", "--older-than", "0s")

    def test_what_was_frozen_is_a_miss_and_thaw_brings_it_back(self):
        frozen = self.cold()
        self.assertEqual((frozen["blocks"], frozen["known_blocks"]), (9, 0))
        self.assertGreater(frozen["cold_bytes"], 0)
        self.assertEqual(self.matched(self.ids), 0)
        answer = self.document("thaw", "chat", "--ids", self.prompt)
        self.assertEqual((answer["stored_tokens"], answer["stored_before"]), (SLOT_TOKENS, 0))
        self.assertEqual(self.matched(self.ids), SLOT_TOKENS)
        self.assertEqual(self.document("verify", "chat")["cold_files"], 1)
        stat = self.document("stat", "chat")
        self.assertEqual((stat["cold_files"], stat["cold_blocks"]), (1, 9))
        self.assertEqual(stat["counters"]["frozen_blocks"], 9)
        self.assertEqual(stat["counters"]["thawed_blocks"], 6)
        again = self.document("freeze", "chat", "--older-than", "0s", "--codec", "zstd")
        self.assertEqual((again["blocks"], again["known_blocks"]), (6, 6))

    def test_freeze_and_thaw_speak_in_words(self):
        self.filled("chat", "--cold", "4M")
        self.assertRegex(self.esker("freeze", "chat").out, r"froze 0 blocks of chat")
        words = ("freeze", "chat", "--older-than", "0s", "--threads", "2")
        self.assertRegex(self.esker(*words, "-n").out, r"would freeze 9 blocks of chat")
        self.assertRegex(self.esker(*words).out, r"froze 9 blocks of chat\ncompressed +\S+ KiB to ")
        self.assertIn("cold share", self.esker("info", "chat").out)
        self.assertRegex(self.esker("stat", "chat").out,
                         r"(?m)^cold +9 blocks in \d+ files?: \S+ KiB compressed to ")
        text = self.esker("thaw", "chat", "--ids", "-", stdin=json.dumps(self.ids).encode()).out
        self.assertIn(f"{SLOT_TOKENS} of {SLOT_TOKENS} tokens are stored, 0 before", text)

    def test_an_export_says_that_frozen_blocks_are_left_out(self):
        self.filled("chat", "--cold", "4M")
        output = self.dir / "a.esnap"
        self.assertNotIn("thaw", self.esker("export", "chat", "-o", output).err)
        self.esker("freeze", "chat", "--older-than", "0s")
        self.assertIn("9 blocks in cold files: what is only there is left out",
                      self.esker("export", "chat", "-o", output, "-f").err)

    def test_most_limits_a_freeze(self):
        self.filled("chat", "--cold", "4M")
        frozen = self.document("freeze", "chat", "--older-than", "0s", "--most", "48K")
        self.assertEqual(frozen["blocks"], 3)

    def test_a_session_is_thawed_by_its_name(self):
        self.create("chat", "--cold", "4M")
        self.document("import", "chat", SLOT, "--model", "name=tiny", "--session", "s 1")
        self.document("freeze", "chat", "--older-than", "0s")
        self.assertEqual(self.document("thaw", "chat", "--session", "s 1")["stored_tokens"],
                         SLOT_TOKENS)
        self.refused("thaw", "chat", "--session", "s 2", code=3)

    def test_rm_forgets_a_path_that_is_only_cold(self):
        self.filled("chat", "--cold", "4M")
        paths = [path["path"] for path in self.paths()]
        self.document("freeze", "chat", "--older-than", "0s")
        self.assertEqual(self.paths(), [])
        freed = self.document("rm", "chat", *paths)
        self.assertEqual(freed["blocks"], 9)
        self.assertEqual(self.document("stat", "chat")["cold_files"], 0)

    def test_nonsense_is_refused_by_name(self):
        self.filled()
        self.assertIn("cold", self.refused("freeze", "chat", "--older-than", "0s"))
        self.assertIn("--level", self.refused("freeze", "chat", "--level", "3"))
        self.assertIn("--ids", self.refused("thaw", "chat"))
        self.assertIn("cold", self.refused("create", "other", "--layers", "1", "--kv-heads", "1",
                                           "--head-dim", "64", "--dtype", "f16", "--capacity", "8M",
                                           "--cold", "8M"))
