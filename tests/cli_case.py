"""What the tests of the command `esker` share. ESKER_BIN names the binary to test."""

import json
import os
import pathlib
import pty
import select
import shutil
import struct
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.environ.get("ESKER_BIN", str(ROOT / "build" / "tools" / "esker"))
ATTACH_STATE = os.environ.get("ESKER_ATTACH_STATE", str(ROOT / "build" / "tests" / "attach_state"))
SLOT = ROOT / "tests" / "golden" / "slots" / "dense-tiny.slot"
SLOT_TOKENS = 188
BLOCK_TOKENS = 32
LOOKS = ("info", "ls", "stat", "ps", "log", "verify")
VERBS = (*LOOKS, "match", "top", "report", "reap", "session", "import", "export", "create", "rm",
         "evict", "trim", "destroy", "diff", "merge", "split", "repack", "backup", "restore",
         "convert", "cat", "resize", "maintain", "config", "freeze", "thaw")
ALIASES = {"check": "verify", "prune": "evict"}
SESSION_VERBS = ("ls", "show", "rm", "fork", "rename", "keep")
HANG_S = 60  # nobody's expected duration: only what ends a command that hangs


def slot_ids(data):
    """The tokens of a packed sequence file, by our own reading: -1, version, count, ids."""
    (count,) = struct.unpack_from("<I", data, 20)
    return list(struct.unpack_from(f"<{count}i", data, 24))


class Answer:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()

    @property
    def json(self):
        return json.loads(self.out)


class CliCase(unittest.TestCase):
    """A home of its own for every test."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="esker-cli-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.home = self.dir / "home"
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("ESKER_", "XDG_")) and k != "NO_COLOR"}
        self.env.update(ESKER_HOME=str(self.home), HOME=str(self.dir), TERM="xterm")
        self.attached = []
        self.addCleanup(self.detach)

    def esker(self, *words, code=0, stdin=b"", env=None, cwd=None):
        done = subprocess.run([BINARY, *map(str, words)], input=stdin, capture_output=True,
                              env={**self.env, **(env or {})}, cwd=cwd or self.dir, timeout=HANG_S)
        answer = Answer(done)
        self.assertEqual(answer.code, code, f"{words}\n{answer.out}\n{answer.err}")
        return answer

    def document(self, verb, *words, code=0, **more):
        """The answer under --json, whose schema must be the verb's."""
        answer = self.esker(verb, *words, "--json", code=code, **more).json
        self.assertEqual(answer["schema"], f"esker.{verb}/1")
        return answer

    def refused(self, *words, code=2, **more):
        """What a refusal says. It says it on stderr, and nothing on stdout."""
        answer = self.esker(*words, code=code, **more)
        self.assertEqual(answer.out, "")
        self.assertTrue(answer.err.startswith("esker: "), answer.err)
        return answer.err

    def create(self, name="chat", *more):
        self.esker("create", name, "--like", SLOT, "--model", "name=tiny", "--capacity", "16M",
                   "--segment-size", "1M", *more)
        return name

    def filled(self, name="chat", *more):
        """A store with the slot file's tokens, and a second path that leaves it at token 100."""
        self.create(name, *more)
        self.load(name, SLOT)
        other = bytearray(SLOT.read_bytes())
        self.ids = slot_ids(other)
        self.other_ids = [*self.ids[:100], *(token + 1 for token in self.ids[100:])]
        struct.pack_into(f"<{SLOT_TOKENS}i", other, 24, *self.other_ids)
        self.other_slot = self.dir / "other.slot"
        self.other_slot.write_bytes(other)
        self.load(name, self.other_slot)
        return name

    def load(self, name, file):
        return self.document("import", name, file, "--model", "name=tiny")

    def paths(self, name="chat"):
        return self.document("ls", name)["paths"]

    def matched(self, ids, name="chat", *more):
        done = subprocess.run([BINARY, "match", name, "--ids", "-", "--json", *more], env=self.env,
                              input=json.dumps(ids).encode(), capture_output=True, timeout=HANG_S)
        matched = json.loads(done.stdout)["matched_tokens"]
        self.assertEqual(done.returncode, 1 if matched == 0 else 0)
        return matched

    def hold(self, name):
        """A process that has the store open: it has said the first event it found."""
        process = subprocess.Popen([BINARY, "log", name, "-f", "--json"], env=self.env,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.attached.append(process)
        self.assertIn(b"esker.log/1", process.stdout.readline())
        return process

    def detach(self):
        for process in self.attached:
            process.kill()
            process.communicate()

    def on_terminal(self, *words, answer=b"", env=None):
        """Runs with a terminal as stdin, stdout and stderr: exit code and what it showed."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.dir)
            os.execve(BINARY, [BINARY, *map(str, words)], {**self.env, **(env or {})})
        os.write(terminal, answer)
        shown = b""
        while select.select([terminal], [], [], HANG_S)[0]:
            try:
                piece = os.read(terminal, 4096)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            shown += piece
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()
