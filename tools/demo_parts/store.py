"""The esker command: every call that the demo makes to it, and what it reads from the answers."""

import json
import subprocess
from dataclasses import dataclass

CAPACITY = "2GiB"


class EskerError(Exception):
    """The esker command failed."""


@dataclass
class Imported:
    tokens: int  # in the slot file
    new_tokens: int
    new_blocks: int
    shared_blocks: int  # of the file's blocks, those that were there already


@dataclass
class Session:
    tokens: int
    reusable_tokens: int


@dataclass
class Totals:
    blocks: int
    store_bytes: int


class EskerStore:
    """One store, seen through the command line."""

    def __init__(self, esker, directory, model_file, model_name):
        self._esker = esker
        self._directory = directory
        self._model = ["--model-file", model_file, "--model", f"name={model_name}"]
        self.block_tokens = 0

    def create(self, like):
        answer = self._run("create", self._directory, "--like", like, *self._model,
                           "--capacity", CAPACITY)
        self.block_tokens = answer["geometry"]["block_tokens"]

    def import_slot(self, slot_file, session, note):
        """Stores what is new of the file, and keeps its sequence as a session."""
        answer = self._run("import", self._directory, slot_file, *self._model,
                           "--session", session, "--set", note)
        blocks = -(-answer["tokens"] // self.block_tokens)
        return Imported(answer["tokens"], answer["new_tokens"], answer["new_blocks"],
                        blocks - answer["new_blocks"])

    def session(self, name):
        answer = self._run("session", "show", self._directory, name)
        return Session(answer["tokens"], answer["reusable_tokens"])

    def list_sessions(self):
        """The command that lists them, as a user would type it, and what that shows."""
        words = ["session", "ls", self._directory, "--sort", "name"]
        done = subprocess.run([self._esker, *words], text=True, stdin=subprocess.DEVNULL,
                              capture_output=True, check=False)
        if done.returncode != 0:
            raise self._error("session ls", done)
        return " ".join(["esker", *words]), done.stdout

    def match(self, ids_file):
        return self._run("match", self._directory, "--ids", ids_file)["matched_tokens"]

    def export(self, ids_file, like, slot_file):
        """Writes the longest stored prefix of the ids as a slot file; returns its tokens."""
        return self._run("export", self._directory, "--format", "llama", "--like", like,
                         "--ids", ids_file, "-o", slot_file)["tokens"]

    def verify(self):
        """True when every header, checksum and invariant of the store holds."""
        done = self._start("verify", self._directory)
        if done.returncode not in (0, 1):
            raise self._error("verify", done)
        return done.returncode == 0

    def totals(self):
        answer = self._run("stat", self._directory)
        return Totals(answer["blocks_ready"], answer["store_bytes"])

    def _run(self, *words):
        done = self._start(*words)
        if done.returncode != 0:
            raise self._error(words[0], done)
        return json.loads(done.stdout)

    def _start(self, *words):
        return subprocess.run([self._esker, *words, "--json"], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)

    @staticmethod
    def _error(command, done):
        said = done.stderr.strip() or done.stdout.strip()
        return EskerError(f"esker {command}: exit code {done.returncode}: {said}")
