#!/usr/bin/env python3
"""Drives the command `esker` as its users do. ESKER_BIN names the binary to test."""

import json
import unittest

from cli_case import ALIASES, LOOKS, ROOT, SLOT, VERBS, CliCase
from cli_backup_cases import *  # noqa: F403
from cli_cold_cases import *  # noqa: F403
from cli_house_cases import *  # noqa: F403
from cli_cat_cases import *  # noqa: F403
from cli_completion_cases import *  # noqa: F403
from cli_look_cases import *  # noqa: F403
from cli_convert_cases import *  # noqa: F403
from cli_session_cases import *  # noqa: F403
from cli_session_hostile_cases import *  # noqa: F403
from cli_snapshot_cases import *  # noqa: F403
from cli_snapshot_hostile_cases import *  # noqa: F403
from cli_store_cases import *  # noqa: F403: the cases on stores that hold something


class HelpTest(CliCase):
    def test_help_shows_examples_first_and_commands_in_groups(self):
        text = self.esker("--help").out
        order = [text.index(word) for word in
                 ("Examples:", "Usage:", "Look:", "Check:", "Sessions:", "Move:", "Change:",
                  "Keep house:")]
        self.assertEqual(order, sorted(order))
        for verb in VERBS:
            self.assertRegex(text, rf"(?m)^  {verb}[ ,]")

    def test_every_command_has_help_with_an_example(self):
        for verb in VERBS:
            text = self.esker(verb, "--help").out
            self.assertIn(f"  esker {verb} ", text)
            self.assertEqual(self.esker("help", verb).out, text)

    def test_an_alias_is_told_and_does_the_same(self):
        self.create()
        for alias, verb in ALIASES.items():
            self.assertRegex(self.esker("--help").out, rf"(?m)^  {verb}, ?{alias} ")
            self.assertIn(f"esker {alias} is the same", self.esker(verb, "--help").out)
            self.assertEqual(self.esker(alias, "--help").out, self.esker(verb, "--help").out)
        self.assertEqual(self.esker("check", "chat", "--json").json["schema"], "esker.verify/1")
        self.assertIn("did you mean `esker check`?", self.refused("chek"))

    def test_version_tells_library_and_format(self):
        self.assertRegex(self.esker("--version").out, r"^esker \d+\.\d+\.\d+\n.*format.*\d")
        answer = self.esker("--version", "--json").json
        self.assertEqual(answer["schema"], "esker.version/1")


class UsageTest(CliCase):
    def test_an_unknown_command_is_answered_with_the_nearest(self):
        self.assertIn("did you mean `esker verify`?", self.refused("verfy"))
        self.assertIn("did you mean `esker verify`?", self.refused("help", "verfy"))
        self.assertNotIn("did you mean", self.refused("xylophone"))

    def test_what_cannot_be_understood_is_exit_2_and_says_where_help_is(self):
        for words in (("ls", "--sort", "colour"), ("ls", "a", "b"), ("info", "--nonsense"),
                      ("info",), ("match", "chat"), ("trim", "chat"), ("evict", "chat"),
                      ("evict", "chat", "--to", "1G", "--older-than", "1d"),
                      ("evict", "chat", "--to", "-1"), ("evict", "chat", "--to", "12 parsecs"),
                      ("evict", "chat", "--older-than", "7"), ("rm", "chat"), ("rm",),
                      ("import", "chat"), ("export", "chat"), ("--bogus",),
                      ("export", "chat", "-o", "f", "--like", SLOT),
                      ("match", "chat", "--ids", "f", "--first", "0"),
                      ("match", "chat", "--ids", "f", "--first", "99999999999"),
                      ("match", "chat", "--ids", "f", "--namespace", "0xabc"),
                      ("match", "chat", "--ids", "f", "--namespace", "x" * 65),
                      ("info", "chat", "-s", "chat"), ("create", "chat", "--layers", "2")):
            with self.subTest(words=words):
                self.assertIn("--help`)", self.refused(*words))

    def test_usage_errors_under_json_are_one_object_on_stderr(self):
        for words in (("ls", "--sort", "colour"), ("lst",), ("rm", "chat"), ("info", "nowhere")):
            answer = self.esker(*words, "--json", code=3 if "nowhere" in words else 2)
            self.assertEqual(answer.out, "")
            error = json.loads(answer.err)
            self.assertEqual(error["schema"], "esker.error/1")
            self.assertEqual(error["exit"], answer.code)
            self.assertTrue(error["message"])

    def test_a_store_that_is_missing_is_exit_3_for_every_command(self):
        for verb in (*LOOKS, "reap", "destroy"):
            self.assertIn("nowhere", self.refused(verb, "nowhere", code=3))
        self.refused("rm", "nowhere", "abc", code=3)
        self.refused("evict", "nowhere", "--to", "0", code=3)
        self.refused("trim", "nowhere", "--keep-free", "1G", code=3)
        self.refused("match", "nowhere", "--ids", "-", stdin=b"[1]", code=3)
        self.refused("import", "nowhere", SLOT, "--model", "name=tiny", code=3)
        self.refused("export", "nowhere", "-o", "f", code=3)

    def test_a_path_without_a_store_is_named_once_with_what_to_do(self):
        nowhere, empty, file = self.dir / "nowhere", self.dir / "empty", self.dir / "file"
        empty.mkdir()
        file.touch()
        calls = (*((verb,) for verb in (*LOOKS, "reap", "destroy")), ("session", "ls"),
                 ("trim", "--keep-free", "1G"))
        for path, why in ((nowhere, "there is no such directory"), (file, "that is no directory"),
                          (empty, "there is no file \"esker\"")):
            for verb, *more in calls:
                said = self.refused(verb, *more, path, code=3)
                self.assertEqual(said, f"esker: {path}: no store here ({why}); `esker create` "
                                       "makes one\n")
        self.assertIn("`esker create` makes one", self.refused("info", "nowhere", code=3))
        self.create()
        self.assertIn("`esker ls` lists the stores", self.refused("info", "nowhere", code=3))

    def test_a_slip_in_a_name_is_answered_with_the_nearest_store(self):
        self.create("production")
        self.assertIn("did you mean production?", self.refused("info", "prodution", code=3))
        self.create("./here.esker")
        self.assertIn("did you mean ./here.esker?", self.refused("info", "here.esker", code=3))


class CreateTest(CliCase):
    def test_a_named_store_lands_in_the_home_which_is_private(self):
        text = self.esker("create", "chat", "--layers", 2, "--kv-heads", 1, "--head-dim", 64,
                          "--dtype", "f16", "--model", "name=tiny", "--capacity", "16MiB").out
        self.assertIn("16.0 MiB", text)
        self.assertIn("tiny", text)
        self.assertTrue((self.home / "chat" / "esker").is_file())
        self.assertEqual(self.home.stat().st_mode & 0o777, 0o700)
        info = self.document("info", "chat")
        self.assertEqual(info["capacity_bytes"], 16 << 20)
        self.assertEqual(info["geometry"]["block_tokens"], 32)
        self.assertEqual(info["geometry"]["layers"][0]["key_row_bytes"], 128)

    def test_an_operand_with_a_slash_is_a_path(self):
        self.create("./deep.esker")
        self.assertTrue((self.dir / "deep.esker" / "esker").is_file())
        self.assertFalse(self.home.exists())
        self.assertEqual(self.document("info", self.dir / "deep.esker")["model"]["entries"],
                         {"name": "tiny"})

    def test_without_ESKER_HOME_the_home_follows_XDG(self):
        xdg = {"ESKER_HOME": "", "XDG_CACHE_HOME": str(self.dir / "xdg")}
        words = ("create", "chat", "--like", SLOT, "--capacity", "16M", "--segment-size", "1M")
        self.esker(*words, env=xdg)
        self.assertTrue((self.dir / "xdg" / "esker" / "chat" / "esker").is_file())
        self.esker(*words, env={"ESKER_HOME": "", "XDG_CACHE_HOME": "relative"})
        self.assertTrue((self.dir / ".cache" / "esker" / "chat" / "esker").is_file())

    def test_like_gives_geometry_and_never_identity(self):
        answer = self.esker("create", "chat", "--like", SLOT, "--capacity", "16M",
                            "--segment-size", "1M")
        self.assertIn("unnamed", answer.out)
        self.assertIn("unnamed", answer.err)
        self.assertTrue(self.document("info", "chat")["model"]["unnamed"])
        for words in (("info", "chat"), ("stat", "chat"), ("ls",), ("ls", "chat"), ()):
            self.assertIn("unnamed", self.esker(*words).out)

    def test_the_capacity_is_told_when_it_was_chosen_by_the_library(self):
        answer = self.document("create", "chat", "--like", SLOT, "--model", "name=tiny")
        self.assertGreater(answer["capacity_bytes"], 0)
        self.assertLessEqual(answer["capacity_bytes"], 64 << 30)

    def test_a_second_store_of_that_name_and_bad_geometry_are_refused(self):
        self.create()
        self.refused("create", "chat", "--like", SLOT)
        shape = ["--layers", 2, "--kv-heads", 1, "--head-dim", 64]
        self.assertIn("f17", self.refused("create", "x", *shape, "--dtype", "f17"))
        self.refused("create", "x", *shape, "--dtype", "f16", "--like", SLOT)
        self.refused("create", "x", *shape, "--dtype", "f16", "--block-tokens", 1025)
        self.refused("create", "x", *shape, "--dtype", "f16", "--seats", 4096)
        self.refused("create", "x", *shape, "--dtype", "f16", "--model", "novalue")
        self.refused("create", "x", *shape, "--dtype", "f16", "--model", "a=1", "--model", "a=2")
        self.refused("create", "x", *shape, "--dtype", "f16", "--capacity", "1K")
        self.refused("create", "x", *shape, "--dtype", "f16", "--capacity", "0")
        self.refused("create", "x", "--like", self.dir)
        self.refused("create", "x", "--like", ROOT / "meson.build")
        self.assertEqual([s["store"] for s in self.document("ls")["stores"]], ["chat"])

    def test_a_group_store_is_open_to_the_group_and_to_nobody_else(self):
        self.create("team", "--group")
        self.assertTrue(self.document("info", "team")["group"])
        self.assertEqual((self.home / "team").stat().st_mode & 0o7777, 0o2770)


if __name__ == "__main__":
    unittest.main()
