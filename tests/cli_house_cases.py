"""Cases of cli_test.py on keeping house: config, resize, maintain."""

import os
import re
import shutil
import subprocess
import time

from cli_case import HANG_S, ROOT, SLOT, SLOT_TOKENS, CliCase

__all__ = ["ConfigTest", "ResizeTest", "MaintainTest"]

DAY_S = 24 * 3600
UNITS = ROOT / "tools" / "systemd"


class HouseCase(CliCase):
    def settings(self, text):
        self.home.mkdir(mode=0o700, exist_ok=True)
        conf = self.home / "esker.conf"
        conf.write_text(text)
        conf.chmod(0o600)

    def age(self, name, days):
        """As if nobody had opened the store for so long."""
        then = time.time() - days * DAY_S
        os.utime(self.home / name / "lock", (then, then))

    def opened(self, name):
        return (self.home / name / "lock").stat().st_mtime

    def maintained(self, *words, code=0):
        answer = self.document("maintain", *words, code=code)
        return answer, {store["store"]: store for store in answer["stores"]}


class ConfigTest(HouseCase):
    def test_without_options_it_shows_the_defaults_and_writes_nothing(self):
        text = self.esker("config").out
        self.assertRegex(text, rf"(?m)^home +{self.home}$")
        self.assertRegex(text, r"(?m)^budget +none; 0 stores take 0 B$")
        self.assertRegex(text, r"(?m)^keep free +default: \S+ \S+ of this disk$")
        self.assertFalse(self.home.exists())

    def test_what_is_set_is_shown_kept_and_private(self):
        self.settings("# mine\nelse=5\n")
        answer = self.document("config", "--budget", "1.5GiB")
        self.assertEqual(answer["budget_bytes"], 3 << 29)
        self.assertEqual(answer["keep_free"], "default")
        answer = self.document("config", "--keep-free", "7%")
        self.assertEqual((answer["budget_bytes"], answer["keep_free"]), (3 << 29, "7%"))
        conf = self.home / "esker.conf"
        self.assertEqual(conf.read_text(), f"# mine\nelse=5\nbudget={3 << 29}\nkeep_free=7%\n")
        self.assertEqual(conf.stat().st_mode & 0o777, 0o600)
        answer = self.document("config", "--keep-free", "5M", "--budget", "none")
        self.assertEqual((answer["budget_bytes"], answer["keep_free"]), (None, 5 << 20))
        self.assertEqual(answer["keep_free_bytes"], 5 << 20)
        self.assertEqual(sorted(p.name for p in self.home.iterdir()),
                         [".esker-budget.lock", "esker.conf"])

    def test_values_that_make_no_sense_are_refused_and_change_nothing(self):
        for words in (("--budget", "much"), ("--budget", "0"), ("--budget", "-1"),
                      ("--keep-free", "101%"), ("--keep-free", "%"), ("--keep-free", "-1%"),
                      ("--keep-free", "x"), ("-s", "chat"), ("chat",)):
            with self.subTest(words=words):
                self.assertIn("--help`)", self.refused("config", *words))
        self.assertFalse(self.home.exists())
        self.settings("budget=12 GiB\n")
        self.assertIn("line 1", self.refused("config"))
        self.assertEqual((self.home / "esker.conf").read_text(), "budget=12 GiB\n")

    def test_over_the_budget_it_says_so(self):
        self.create()
        self.assertIn("over the budget", self.esker("config", "--budget", "1K").err)


class ResizeTest(HouseCase):
    def test_a_store_becomes_larger_and_smaller_and_keeps_what_fits(self):
        self.filled()
        text = self.esker("resize", "chat", "--capacity", "64M").out
        self.assertRegex(text, r"(?m)^capacity +64.0 MiB, before 16.0 MiB$")
        self.assertEqual(self.document("info", "chat")["capacity_bytes"], 64 << 20)
        self.assertEqual(self.matched(self.ids), SLOT_TOKENS)
        answer = self.document("resize", "chat", "--capacity", "3M")
        self.assertEqual(answer["capacity_bytes"], 3 << 20)
        self.assertEqual(answer["old_capacity_bytes"], 64 << 20)
        self.assertEqual(answer["dropped_blocks"], 0)
        self.assertEqual(self.matched(self.ids), SLOT_TOKENS)
        self.assertEqual(self.matched(self.other_ids), SLOT_TOKENS)
        self.esker("verify", "chat")

    def test_a_dry_run_changes_nothing(self):
        self.filled()
        self.assertIn("would have resized", self.esker("resize", "chat", "--capacity", "3M",
                                                       "-n").out)
        self.assertEqual(self.document("info", "chat")["capacity_bytes"], 16 << 20)

    def test_what_cannot_be_done_is_refused_in_words(self):
        self.filled()
        self.assertIn("--help`)", self.refused("resize", "chat"))
        self.assertIn("at least", self.refused("resize", "chat", "--capacity", "1K"))
        self.refused("resize", "nowhere", "--capacity", "1G", code=3)
        holder = self.hold("chat")
        said = self.refused("resize", "chat", "--capacity", "3M", code=4)
        self.assertIn(f"pid {holder.pid}", said)
        self.assertEqual(self.document("info", "chat")["capacity_bytes"], 16 << 20)


class MaintainTest(HouseCase):
    def test_a_home_without_stores_needs_nothing(self):
        self.assertIn("no stores in", self.esker("maintain").out)
        answer, stores = self.maintained("--all")
        self.assertEqual((answer["removed_stores"], answer["swept"], stores), ([], [], {}))

    def test_sessions_whose_time_is_over_go_and_others_stay(self):
        self.create()
        for name, ttl in (("brief", "1s"), ("long", "7d")):
            self.esker("import", "chat", SLOT, "--model", "name=tiny", "--session", name, "--ttl",
                       ttl)
        time.sleep(2.2)
        _, stores = self.maintained("-n")
        self.assertEqual(stores["chat"]["expired_sessions"], ["brief"])
        self.assertIn("1 session over", self.esker("maintain").out)
        left = self.esker("session", "ls", "chat", "--json").json["sessions"]
        self.assertEqual([session["name"] for session in left], ["long"])
        self.assertEqual(self.esker("maintain").out, "chat: nothing to do\n")

    def test_looking_after_a_store_is_no_use_of_it_unless_others_have_it_open(self):
        self.filled()
        self.age("chat", 40)
        old = self.opened("chat")
        self.esker("maintain")
        self.assertEqual(self.opened("chat"), old)
        self.hold("chat")
        self.age("chat", 40)
        _, stores = self.maintained()
        self.assertTrue(stores["chat"]["in_use"])
        self.assertGreater(self.opened("chat"), time.time() - DAY_S)

    def test_over_the_budget_an_unused_store_goes_and_one_in_use_stays(self):
        for name in ("old", "held", "young"):
            self.create(name)
        self.hold("held")
        self.age("old", 40)
        self.age("held", 50)
        self.age("young", 3)
        self.settings("budget=1000\n")
        answer, stores = self.maintained("-n")
        self.assertEqual([store["store"] for store in answer["removed_stores"]], ["old"])
        self.assertTrue((self.home / "old").exists())
        done = self.esker("maintain")
        self.assertRegex(done.out, r"(?m)^old: removed for the budget")
        self.assertIn("over the budget", done.err)
        self.assertFalse((self.home / "old").exists())
        self.assertTrue((self.home / "held" / "esker").exists())
        self.assertTrue((self.home / "young" / "esker").exists())

    def test_blocks_go_back_to_the_disk_until_it_is_as_free_as_wanted(self):
        self.filled()
        self.settings("keep_free=0\n")
        self.assertEqual(self.esker("maintain").out, "chat: nothing to do\n")
        self.assertEqual(self.matched(self.ids), SLOT_TOKENS)
        self.settings("keep_free=100%\n")
        _, stores = self.maintained("-n")
        self.assertGreater(stores["chat"]["evicted_blocks"], 0)
        self.assertEqual(self.matched(self.ids), SLOT_TOKENS)
        _, stores = self.maintained("chat")
        self.assertGreater(stores["chat"]["evicted_blocks"], 0)
        self.assertGreater(stores["chat"]["returned_bytes"], 100_000)
        self.assertEqual(self.matched(self.ids), 0)

    def test_a_store_whose_model_file_is_gone_is_named(self):
        model = self.dir / "tiny.gguf"
        model.write_bytes(b"GGUF and more")
        self.esker("create", "chat", "--like", SLOT, "--model-file", "tiny.gguf", "--capacity",
                   "16M", "--segment-size", "1M")
        _, stores = self.maintained()
        self.assertEqual(stores["chat"]["model_file"], str(model))
        self.assertFalse(stores["chat"]["model_gone"])
        model.unlink()
        self.assertIn(f"its model {model} is gone", self.esker("maintain").out)
        self.esker("destroy", "chat")
        self.assertFalse((self.home / "chat").exists())

    def test_the_failure_of_one_store_does_not_stop_the_others(self):
        self.create("bad")
        self.filled("good")
        (self.home / "bad" / "esker").write_bytes(b"x" * 65536)
        done = self.esker("maintain", code=2)
        self.assertIn("bad", done.err)
        self.assertIn("good: nothing to do", done.out)
        answer, stores = self.maintained(code=2)
        self.assertIn("magic", stores["bad"]["error"])
        self.assertIsNone(stores["good"]["error"])
        self.refused("maintain", "nowhere", code=3)

    def test_what_a_killed_process_left_half_made_is_swept(self):
        self.create("half")
        (self.home / "half" / "esker").unlink()
        self.assertIn("half: would be removed", self.esker("maintain", "-n").out)
        answer, _ = self.maintained()
        self.assertEqual(answer["swept"], ["half"])
        self.assertFalse((self.home / "half").exists())

    def test_stores_are_operands_or_all_and_ESKER_STORE_is_one(self):
        self.create("a")
        self.create("b")
        self.assertEqual(set(self.maintained("b", "a")[1]), {"a", "b"})
        self.assertEqual(set(self.maintained("-s", "a")[1]), {"a"})
        named = {"ESKER_STORE": "b"}
        self.assertEqual(self.esker("maintain", env=named).out, "b: nothing to do\n")
        self.assertIn("a: nothing", self.esker("maintain", "--all", env=named).out)
        for words in (("--all", "a"), ("-s", "a", "b"), ("--freeze-after", "soon")):
            self.assertIn("--help`)", self.refused("maintain", *words))

    def test_the_units_are_sound(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("there is no systemd-analyze")
        for unit in ("esker-maintain.service", "esker-maintain.timer"):
            source = UNITS / (unit + ".in")
            text = (source if source.exists() else UNITS / unit).read_text()
            text = re.sub(r"@bindir@/esker", "/bin/true", text)
            self.assertNotIn("@", text)
            (self.dir / unit).write_text(text)
        done = subprocess.run(
            ["systemd-analyze", "--user", "--man=no", "verify", self.dir / "esker-maintain.timer",
             self.dir / "esker-maintain.service"],
            capture_output=True, text=True, timeout=HANG_S,
            env={**self.env, "XDG_RUNTIME_DIR": str(self.dir),
                 "SYSTEMD_UNIT_PATH": f"{self.dir}:"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
