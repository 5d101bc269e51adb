"""Cases of cli_test.py on what looks at a store over time: top, stat --prometheus, report."""

import datetime
import fcntl
import html.parser
import json
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

from cli_case import BINARY, HANG_S, SLOT, SLOT_TOKENS, CliCase
from cli_session_case import SessionCase

__all__ = ["TopTest", "PrometheusTest", "ReportTest", "ProgressTest"]

ALTERNATE, BACK = b"\x1b[?1049h", b"\x1b[?1049l"
SHOWN, HIDDEN = b"\x1b[?25h", b"\x1b[?25l"


class Terminal:
    """The command on a terminal of our own."""

    def __init__(self, case, *words, rows=24, columns=80):
        self.master, self.slave = os.openpty()
        self.resize(rows, columns)
        self.modes = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            [BINARY, *map(str, words)], stdin=self.slave, stdout=self.slave, stderr=self.slave,
            env=case.env, cwd=case.dir, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.shown = b""
        case.addCleanup(self.close)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, done):
        end = time.monotonic() + HANG_S
        while not done(self.shown) and time.monotonic() < end:
            if select.select([self.master], [], [], 0.2)[0]:
                self.shown += os.read(self.master, 65536)
        assert done(self.shown), self.shown
        return self.shown

    def type(self, keys):
        os.write(self.master, keys)

    def end(self):
        """Its exit status, once all that it wrote is read."""
        self.read_until(lambda shown: BACK in shown)
        code = self.process.wait(HANG_S)
        return code

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def screens(shown):
    """The texts of all views, without what the terminal obeys."""
    pieces = shown.split(b"\x1b[H")[1:]
    plain = [re.sub(rb"\x1b\[[?0-9;]*[a-zA-Z]", b"", piece).decode() for piece in pieces]
    return [re.split(r"\r+\n", piece) for piece in plain]


class TopTest(CliCase):
    def test_the_screen_and_the_terminal_are_as_before_when_q_ends_it(self):
        self.filled()
        terminal = Terminal(self, "top", "chat")
        terminal.read_until(lambda shown: b"ready" in shown)
        self.assertTrue(terminal.shown.startswith(ALTERNATE + HIDDEN))
        during = termios.tcgetattr(terminal.slave)
        self.assertEqual(during[3] & (termios.ECHO | termios.ICANON), 0)
        terminal.type(b"q")
        self.assertEqual(terminal.end(), 0)
        self.assertLess(terminal.shown.rindex(SHOWN), terminal.shown.rindex(BACK))
        self.assertTrue(terminal.shown.endswith(BACK))
        self.assertEqual(termios.tcgetattr(terminal.slave), terminal.modes)

    def test_control_c_and_signals_leave_the_terminal_as_it_was(self):
        self.create()
        ends = ((lambda t: t.type(b"\x03"), 0),
                (lambda t: t.process.send_signal(signal.SIGTERM), -signal.SIGTERM),
                (lambda t: t.process.send_signal(signal.SIGHUP), -signal.SIGHUP),
                (lambda t: t.process.send_signal(signal.SIGINT), 0))
        for end, code in ends:
            terminal = Terminal(self, "top", "chat", "--interval", "1h")
            terminal.read_until(lambda shown: b"ready" in shown)
            end(terminal)
            self.assertEqual(terminal.end(), code)
            self.assertTrue(terminal.shown.endswith(BACK))
            self.assertEqual(termios.tcgetattr(terminal.slave), terminal.modes)

    def test_every_view_fits_its_screen_whatever_the_size(self):
        self.filled()

        for rows, columns in ((24, 80), (50, 200), (10, 40), (3, 20), (1, 1), (100, 30)):
            for words in (("top", "chat"), ("top",)):
                with self.subTest(rows=rows, columns=columns, words=words):
                    terminal = Terminal(self, *words, "-n", "2", "--interval", "50ms", rows=rows,
                                        columns=columns)
                    self.assertEqual(terminal.end(), 0)
                    views = screens(terminal.shown)
                    self.assertEqual(len(views), 2)
                    for view in views:
                        self.assertLessEqual(len(view), rows)
                        self.assertLessEqual(max(map(len, view)), columns)

    def test_another_size_of_the_terminal_is_drawn_at_once(self):
        self.filled()
        terminal = Terminal(self, "top", "chat", "--interval", "1h", rows=24, columns=80)
        terminal.read_until(lambda shown: b"ready" in shown)
        terminal.resize(8, 30)
        terminal.read_until(lambda shown: shown.count(b"\x1b[H") == 2)
        terminal.type(b"q")
        self.assertEqual(terminal.end(), 0)
        last = screens(terminal.shown)[-1]
        self.assertLessEqual(len(last), 8)
        self.assertLessEqual(max(map(len, last)), 30)

    def test_rates_and_the_hit_rate_are_of_the_last_interval(self):
        self.filled()
        process = subprocess.Popen([BINARY, "top", "chat", "-n", "100000", "--interval", "100ms",
                                    "--json"], env=self.env, stdout=subprocess.PIPE)
        self.attached.append(process)
        process.stdout.readline()
        out = self.dir / "keys.npy"
        self.esker("cat", "chat", "--ids", "-", "--layer", 0, "--plane", "key", "-o", out,
                   stdin=json.dumps(self.ids).encode())
        seen = {}
        wanted = ("lookups_per_s", "copied_bytes_per_s", "lookup_tokens")
        end = time.monotonic() + HANG_S
        while not all(seen.get(name) for name in wanted):
            self.assertLess(time.monotonic(), end, seen)
            answer = json.loads(process.stdout.readline())
            self.assertEqual(answer["schema"], "esker.top/1")
            (store,) = answer["stores"]
            self.assertEqual(store["hit_tokens"], store["lookup_tokens"])
            self.assertEqual(store["evicted_blocks_per_s"], 0)
            seen.update({name: value for name, value in store.items() if value})
        self.assertEqual(seen["blocks_ready"], 9)
        self.assertGreaterEqual(seen["lookup_tokens"], SLOT_TOKENS)
        while json.loads(process.stdout.readline())["stores"][0]["lookups_per_s"] != 0:
            self.assertLess(time.monotonic(), end)  # nothing happens any more

    def test_without_a_terminal_views_are_printed_plainly(self):
        self.filled()
        text = self.esker("top", "chat", "-n", "3", "--interval", "50ms").out
        self.assertEqual(text.count("esker top"), 3)
        self.assertNotIn("\x1b", text)
        for word in ("disk", "blocks", "hits", "lookups", "copied", "EVENTS", "PID"):
            self.assertIn(word, text)
        lines = self.esker("top", "--interval", "50ms").out.splitlines()
        self.assertRegex(lines[-1], r"^chat +\[\|* *\] +[\d.]+ MiB +- +0.0/s +0 B/s +0  tiny")

    def test_nothing_is_held_between_two_looks(self):
        self.filled()
        terminal = Terminal(self, "top", "--interval", "1h")
        terminal.read_until(lambda shown: b"chat" in shown)
        self.esker("destroy", "chat")
        terminal.type(b"q")
        self.assertEqual(terminal.end(), 0)

    def test_stores_come_and_go_while_it_runs(self):
        self.create("one")
        terminal = Terminal(self, "top", "--interval", "50ms")
        terminal.read_until(lambda shown: b"one " in shown)
        self.create("two")
        terminal.read_until(lambda shown: b"two " in shown)
        self.esker("destroy", "one")
        terminal.read_until(lambda shown: "one " not in "".join(screens(shown)[-2]))
        terminal.type(b"q")
        self.assertEqual(terminal.end(), 0)

    def test_a_damaged_store_is_a_line_and_no_end(self):
        self.create("good")
        shutil.copytree(self.home / "good", self.home / "hurt")
        with open(self.home / "hurt" / "esker", "r+b") as file:
            file.write(b"\xff" * 65536)
        lines = self.esker("top", "--interval", "50ms").out.splitlines()
        self.assertRegex(lines[-1], "^hurt .*esker")
        self.assertRegex(lines[-2], r"^good  ?\[")

    def test_what_cannot_be_understood_is_refused(self):
        self.create()
        self.refused("top", "nowhere", code=3)
        for words in (("--interval", "0"), ("--interval", "1"), ("--interval", "1ms"),
                      ("--interval", "9h"), ("--interval", "nan" + "s"), ("-n", "0"), ("-n", "x")):
            self.assertIn("--help`)", self.refused("top", "chat", *words))

    def test_it_ends_when_nobody_reads(self):
        self.create()
        process = subprocess.Popen([BINARY, "top", "chat", "-n", "1000000", "--interval", "50ms"],
                                   env=self.env, stdout=subprocess.PIPE)
        process.stdout.readline()
        process.stdout.close()
        self.assertIn(process.wait(HANG_S), (0, 141))


NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})\{{({LABEL}(?:,{LABEL})*)\}} (-?\d+(?:\.\d+)?)")


def parse_exposition(text):
    """A strict reader of the text format: {name: (type, {labels: value})}."""
    assert text.endswith("\n")
    families, current = {}, None
    lines = text.split("\n")[:-1]
    for number, line in enumerate(lines):
        assert line == line.strip() and line, f"line {number}: {line!r}"
        if line.startswith("# HELP "):
            name, words = line[7:].split(" ", 1)
            assert re.fullmatch(NAME, name) and words and name not in families, line
            assert lines[number + 1].startswith(f"# TYPE {name} "), line
            families[name] = [None, {}]
        elif line.startswith("# TYPE "):
            current, kind = line[7:].split(" ")
            assert kind in ("gauge", "counter") and families[current] == [None, {}], line
            assert (kind == "counter") == current.endswith("_total"), line
            families[current][0] = kind
        else:
            match = SAMPLE.fullmatch(line)  # no time behind the value
            assert match, line
            name, labels, value = match.groups()
            assert name == current, f"{line}: not below its own TYPE"
            assert labels not in families[name][1], f"{line}: twice"
            assert float(value) >= 0
            families[name][1][labels] = float(value)
    return families


class PrometheusTest(CliCase):
    def test_all_stores_are_in_it_and_every_line_follows_the_grammar(self):
        self.filled()
        self.create("other")
        self.matched(self.ids)
        families = parse_exposition(self.esker("stat", "--prometheus").out)
        self.assertGreater(len(families), 35)
        for name, (kind, samples) in families.items():
            self.assertTrue(name.startswith("esker_"), name)
            self.assertNotRegex(name, r"_(kb|mb|ms|us|ns|kib|mib)(_|$)")
            for labels in samples:
                self.assertRegex(labels, r'^store="(chat|other)"')
        stat = self.document("stat", "chat")
        value = {name: samples.get('store="chat"') for name, (_, samples) in families.items()}
        self.assertEqual(value["esker_up"], 1)
        self.assertEqual(value["esker_capacity_bytes"], 16 << 20)
        self.assertEqual(value["esker_stored_bytes"], stat["store_bytes"])
        count = stat["counters"]
        self.assertEqual(value["esker_published_blocks_total"], count["published_blocks"])
        self.assertEqual(value["esker_hit_tokens_total"], count["hit_tokens"])
        blocks = families["esker_blocks"][1]
        self.assertEqual(blocks['store="chat",state="ready"'], stat["blocks_ready"])
        self.assertEqual(sum(count for labels, count in blocks.items() if "chat" in labels),
                         stat["blocks_total"])
        self.assertIn('store="chat",model="tiny",dtype="f16"', families["esker_info"][1])

    def test_one_store_and_an_empty_home(self):
        self.assertEqual([samples for _, samples in
                          parse_exposition(self.esker("stat", "--prometheus").out).values()
                          if samples], [])
        self.create("one")
        self.create("two")
        text = self.esker("stat", "two", "--prometheus").out
        self.assertIn('store="two"', text)
        self.assertNotIn('store="one"', text)

    def test_names_are_escaped_and_an_unreadable_store_is_down(self):
        self.create('a"b\\c')
        self.create("hurt")
        with open(self.home / "hurt" / "esker", "r+b") as file:
            file.write(b"\xff" * 65536)
        answer = self.esker("stat", "--prometheus")
        up = parse_exposition(answer.out)["esker_up"][1]
        self.assertEqual(up, {'store="a\\"b\\\\c"': 1, 'store="hurt"': 0})
        self.assertIn("hurt", answer.err)

    def test_a_file_is_replaced_at_once_and_a_collector_may_read_it(self):
        self.create()
        file = self.dir / "textfile" / "esker.prom"
        file.parent.mkdir()
        file.write_text("old")
        before = file.stat().st_ino
        self.assertEqual(self.esker("stat", "--prometheus", "-o", file).out, "")
        parse_exposition(file.read_text())
        self.assertNotEqual(file.stat().st_ino, before)
        self.assertEqual(file.stat().st_mode & 0o444, 0o444)
        self.assertEqual(os.listdir(file.parent), ["esker.prom"])

    def test_what_cannot_be_written_leaves_nothing_behind(self):
        self.create()
        in_the_way = self.dir / "esker.prom"
        in_the_way.mkdir()
        self.assertIn("esker.prom", self.refused("stat", "--prometheus", "-o", in_the_way))
        self.refused("stat", "--prometheus", "-o", self.dir / "no" / "where.prom")
        self.assertEqual([p.name for p in self.dir.glob("*prom*")], ["esker.prom"])

    def test_what_cannot_be_understood_is_refused(self):
        self.create()
        self.refused("stat", "nowhere", "--prometheus", code=3)
        for words in (("chat", "-o", "f"), ("chat", "--prometheus", "--json"), ()):
            self.esker("stat", *words, code=2)


class Page(html.parser.HTMLParser):
    """Checks that all tags are closed in order, and collects what could fetch or run something."""

    VOID = {"meta", "input", "br", "rect", "line"}

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.attributes, self.text = [], [], [], ""
        self.feed(text)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.attributes += attributes
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data


class ReportTest(SessionCase):
    def page(self, *words, store="chat", code=0):
        file = self.dir / "report.html"
        self.esker("report", store, "-f", "-o", file, *words, code=code)
        text = file.read_text()
        return Page(text), text

    def test_the_page_stands_alone_and_shows_what_is_there(self):
        self.filled()
        self.keep()
        page, text = self.page()
        for word in ("Room", "What is stored", "Hits and misses", "Age", "Sessions",
                     "Largest paths", "support 17", "tiny", "188"):
            self.assertIn(word, page.text)
        self.assertEqual({"script", "link", "img", "iframe", "object", "a"} & set(page.seen), set())
        self.assertEqual([name for name, _ in page.attributes
                          if name in ("src", "href", "onload", "onclick")], [])
        self.assertNotRegex(text, r"https?://|url\(|@import")
        self.assertIn("default-src 'none'", text)
        self.assertIn("prefers-color-scheme:dark", text)
        self.assertGreaterEqual(page.seen.count("svg"), 4)

    def test_no_text_becomes_markup(self):
        self.create()
        evil = "<script>alert('1')</script>"
        self.keep(evil, SLOT, "--set", f"note=\"><img src=x onerror={evil}>")
        self.load("chat", self.other_slot)
        self.document("import", "chat", self.other_slot, "--model", "name=tiny", "--namespace",
                      "<b>&amp;")
        page, text = self.page()
        self.assertNotIn("<script", text)
        self.assertNotIn("<img", text)
        self.assertIn(evil, page.text)
        self.assertIn("<b>&amp;", page.text)
        self.create("x<i>y")
        page, text = self.page(store="x<i>y")
        self.assertNotIn("<i>y", text)

    def test_tokens_are_shown_only_when_asked_for(self):
        self.create()
        ids = [31_000 + i for i in range(SLOT_TOKENS)]  # numbers that stand nowhere else
        data = bytearray(SLOT.read_bytes())
        struct.pack_into(f"<{SLOT_TOKENS}i", data, 24, *ids)
        slot = self.dir / "plain.slot"
        slot.write_bytes(data)
        self.keep("talk", slot)
        shown = re.compile(r"\b310[0-3]\d\b")
        self.assertEqual(shown.findall(self.page()[0].text), [])
        used = self.last_used()
        time.sleep(1)
        self.assertIn("31000 31001 31002", self.page("--tokens")[0].text)
        self.assertLess(abs(self.last_used() - used), 0.5)  # looking is no use

    def last_used(self):
        return datetime.datetime.fromisoformat(self.paths()[0]["last_used"]).timestamp()

    def test_hits_and_misses_are_watched_over_time(self):
        self.filled()
        process = subprocess.Popen([BINARY, "report", "chat", "-o", self.dir / "w.html", "--watch",
                                    "3s"], env=self.env, stdout=subprocess.PIPE)
        time.sleep(1)
        for _ in range(3):
            self.matched(self.ids)
            self.matched([9, 9, 9])
            self.esker("export", "chat", "--ids", "-", "--like", SLOT, "-f", "-o",
                       self.dir / "o.slot", stdin=json.dumps(self.ids).encode())
        process.communicate(timeout=HANG_S)
        self.assertEqual(process.returncode, 0)
        text = (self.dir / "w.html").read_text()
        Page(text)
        found = sum(int(count.replace(" ", "")) for count in
                    re.findall(r"<title>([\d ]+) tokens? found, ", text))
        self.assertGreater(found, 0)
        self.assertIn("while the store was watched", text)

    def test_an_empty_store_and_one_without_a_free_seat_have_a_page(self):
        self.create()
        page, _ = self.page()
        self.assertIn("Nothing is stored", page.text)
        self.filled("small", "--seats", "1")
        self.hold_all_seats("small")
        page, _ = self.page(store="small")
        self.assertIn("Counters are not known", page.text)

    def hold_all_seats(self, name):
        process = subprocess.Popen([BINARY, "log", name, "-f"], env=self.env,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.attached.append(process)
        end = time.monotonic() + HANG_S
        while self.document("stat", name)["seats_taken"] is not None:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_a_file_in_the_way_is_kept_unless_force_says_otherwise(self):
        self.create()
        file = self.dir / "report.html"
        file.write_text("mine")
        self.assertIn("report.html", self.refused("report", "chat", "-o", file))
        self.assertEqual(file.read_text(), "mine")
        self.esker("report", "chat", "-o", file, "-f")
        self.assertTrue(file.read_text().startswith("<!doctype html>"))
        answer = self.document("report", "chat", "-o", file, "-f")
        self.assertEqual(answer["bytes"], file.stat().st_size)

    def test_a_pipe_gets_the_page_and_nothing_else(self):
        self.create()
        out = self.esker("report", "chat", "-o", "-").out
        self.assertTrue(out.startswith("<!doctype html>"))
        self.assertTrue(out.endswith("</html>\n"))
        self.refused("report", "nowhere", "-o", "-", code=3)
        self.esker("report", "chat", code=2)


class ProgressTest(CliCase):
    def test_nothing_is_shown_where_it_is_not_wanted(self):
        self.filled()
        for words in (("-q",), ("--no-progress",), ("--json",)):
            self.assertNotIn("\x1b[K", self.on_terminal("verify", "chat", *words)[1])
        self.assertNotIn("\x1b", self.esker("verify", "chat").err)
