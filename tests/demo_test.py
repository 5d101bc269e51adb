#!/usr/bin/env python3
"""What can be tested of tools/demo without an engine: its syntax, its arithmetic, its verdicts."""

import ast
import copy
import pathlib
import subprocess
import sys
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ROOT / "tools" / "demo_parts"
sys.path.insert(0, str(PARTS))
sys.dont_write_bytecode = True

import document  # noqa: E402
import prepare  # noqa: E402
import report  # noqa: E402
from scenario import Chat, Findings, Warm  # noqa: E402
from store import Imported, Session, Totals  # noqa: E402


def answer(first_token_ms, prefilled, reused, ids):
    return types.SimpleNamespace(first_token_ms=first_token_ms, prefilled_tokens=prefilled,
                                 reused_tokens=reused, token_ids=ids)


def good_findings():
    """100 tokens of document in blocks of 32; every chat adds 20 tokens of its own."""
    ids = list(range(104))
    first, second, other = (ids + [n] * 20 for n in (1000, 2000, 3000))
    return Findings(
        document_tokens=100, block_tokens=32, cold=answer(1000.0, 110, 0, [5, 6]),
        first_chat=Chat(first, 5000, 1.0, Imported(124, 124, 4, 0)),
        kept=answer(20.0, 8, 104, [7, 8]), same_process=Warm(104, 1, 1, answer(8, 6, 104, [7, 8])),
        after_kill=Warm(104, 3.0, 2.0, answer(15.0, 6, 104, [7, 8])),
        session=Session(124, 124),
        second_chat=Chat(second, 5000, 1.0, Imported(124, 20, 1, 3)), matched_tokens=104,
        known_tokens=104, other_worker=Warm(104, 3.0, 2.0, answer(15.0, 6, 104, [9])),
        other_chat=Chat(other, 5000, 1.0, Imported(124, 20, 1, 3)),
        needed_blocks=document.distinct_blocks([first, second, other], 32),
        totals=Totals(6, 6000), verify_ok=True)


class Syntax(unittest.TestCase):
    def test_every_part_is_python(self):
        files = sorted(PARTS.glob("*.py"))
        self.assertGreater(len(files), 5)
        for file in files:
            ast.parse(file.read_text(), str(file))

    def test_the_command_is_bash(self):
        subprocess.run(["bash", "-n", str(ROOT / "tools" / "demo")], check=True)

    def test_help_needs_nothing_installed(self):
        done = subprocess.run([sys.executable, str(PARTS), "--help"], capture_output=True,
                              text=True, check=True)
        self.assertIn("--document-tokens", done.stdout)


class Blocks(unittest.TestCase):
    def test_a_shared_beginning_counts_once(self):
        self.assertEqual(document.distinct_blocks([[1, 2, 3, 4, 5], [1, 2, 3, 4, 6]], 2), 4)

    def test_equal_blocks_behind_different_beginnings_are_different(self):
        self.assertEqual(document.distinct_blocks([[1, 2, 9, 9], [3, 4, 9, 9]], 2), 4)

    def test_a_partial_block_gives_way_to_its_continuation(self):
        self.assertEqual(document.distinct_blocks([[1, 2, 3], [1, 2, 3, 4]], 2), 2)

    def test_common_length_of_a_list_and_its_beginning(self):
        self.assertEqual(document.common_length([1, 2, 3], [1, 2]), 2)
        self.assertEqual(document.common_length([1, 2, 3], [1, 4, 3]), 1)


class Packages(unittest.TestCase):
    def test_another_version_is_tried_only_when_there_is_one(self):
        refusal = "ERROR: Could not find a version that satisfies x==9 (from versions: {})"
        self.assertTrue(prepare.others_exist(refusal.format("1.0, 2.0")))
        self.assertFalse(prepare.others_exist(refusal.format("none")))
        self.assertFalse(prepare.others_exist("ERROR: no route to host"))


class Report(unittest.TestCase):
    def test_good_findings_break_no_promise(self):
        self.assertEqual(report.broken_promises(good_findings()), [])

    def test_every_promise_can_be_broken(self):
        def with_change(change):
            found = copy.deepcopy(good_findings())
            change(found)
            return report.broken_promises(found)

        changes = {
            "cold prefill": lambda f: setattr(f.cold, "reused_tokens", 1),
            "own slot": lambda f: setattr(f.kept, "reused_tokens", 67),
            "by A from the store": lambda f: setattr(f.same_process.answer, "reused_tokens", 67),
            "after the kill": lambda f: setattr(f.after_kill.answer, "reused_tokens", 67),
            "session that A left": lambda f: setattr(f, "session", Session(100, 100)),
            "reusable after the kill": lambda f: setattr(f.session, "reusable_tokens", 96),
            "by worker B": lambda f: setattr(f.other_worker.answer, "reused_tokens", 67),
            "match finds": lambda f: setattr(f, "matched_tokens", 96),
            "B's chat added": lambda f: setattr(f.other_chat.imported, "new_blocks", 2),
            "in the store": lambda f: setattr(f.totals, "blocks", 7),
            "answers equal": lambda f: setattr(f.kept, "token_ids", [7]),
            "esker verify": lambda f: setattr(f, "verify_ok", False),
        }
        for words, change in changes.items():
            with self.subTest(words):
                broken = with_change(change)
                self.assertEqual(len(broken), 1, broken)
                self.assertIn(words, broken[0])

    def test_the_fields_are_those_promised(self):
        self.assertEqual(list(report.fields(good_findings())), [
            "cold_ms", "warm_ms", "speedup", "document_tokens", "reused_tokens_after_kill",
            "session_tokens", "session_reusable_tokens_after_kill", "reused_tokens_other_worker",
            "new_blocks_other_worker", "shared_blocks",
            "store_bytes", "slot_files_bytes", "answers_equal", "verify_ok"])
        self.assertEqual(report.fields(good_findings())["speedup"], 50.0)

    def test_the_table_names_all_three_answers(self):
        self.assertIn("A, after SIGKILL", report.table(good_findings()))
        self.assertIn("124 of 124 tokens are reusable", report.table(good_findings()))


if __name__ == "__main__":
    unittest.main()
