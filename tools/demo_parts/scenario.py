"""The five steps of the demo: who asks what of whom, and what is measured on the way."""

import json
import os
import time
from dataclasses import dataclass

from document import (FIRST_QUESTION, OTHER_QUESTION, SECOND_QUESTION, Document, common_length,
                      distinct_blocks)
from engine import Worker

ANSWER_TOKENS = 32
FIRST_SESSION, SECOND_SESSION, OTHER_SESSION = "chat 1", "chat 2", "chat 3"
ROOM_TOKENS = 512  # for the template, a question and an answer


@dataclass
class Settings:
    python: str  # one that has the engine
    model_file: str
    document_file: str
    document_tokens: int
    threads: int
    directory: str  # logs and token files
    slot_directory: str


@dataclass
class Warm:
    """An answer that began with what the store holds, and where its time went."""
    stored_tokens: int
    export_ms: float
    restore_ms: float
    answer: object

    @property
    def total_ms(self):
        return self.export_ms + self.restore_ms + self.answer.first_token_ms


@dataclass
class Chat:
    """What a worker holds after an answer, and what of it was new to the store."""
    ids: list
    slot_file_bytes: int
    import_ms: float
    imported: object


@dataclass
class Findings:
    document_tokens: int = 0
    block_tokens: int = 0
    cold: object = None  # A reads document and question, nothing is cached
    first_chat: Chat = None
    kept: object = None  # A's answer to the second question from its own slot
    same_process: Warm = None  # A's answer to it from the store
    after_kill: Warm = None  # the same from a new process
    session: object = None  # the first chat, as the successor of the killed process finds it
    second_chat: Chat = None
    matched_tokens: int = 0  # of the other worker's prompt
    known_tokens: int = 0  # of the other worker's chat: shared with one of the earlier chats
    other_worker: Warm = None
    other_chat: Chat = None
    needed_blocks: int = 0  # for the three chats, when nothing is stored twice
    totals: object = None
    verify_ok: bool = False


class Scenario:
    """Plays the five steps. `say` takes a line for the one who watches."""

    def __init__(self, settings, store, say):
        self._settings = settings
        self._store = store
        self._say = say
        self._workers = []
        self._document = None
        self._found = Findings()

    def run(self):
        try:
            self._read_once(self._start("A"))
            successor = self._restart_after_kill(self._workers[0])
            self._ask_another_worker(self._start("B"), successor)
            self._count()
            return self._found
        finally:
            for worker in self._workers:
                worker.stop()

    def _read_once(self, a):
        found, settings = self._found, self._settings
        self._document = Document(settings.document_file, settings.document_tokens, a)
        found.document_tokens = self._document.tokens
        self._say(f"1. Worker A (process {a.pid}) reads {found.document_tokens} tokens of "
                  f"{settings.document_file}: {FIRST_QUESTION}")
        prompt = self._document.prompt(FIRST_QUESTION, a)
        found.cold = a.complete(prompt, ANSWER_TOKENS)
        self._show(found.cold, found.cold.first_token_ms)
        found.first_chat = self._keep(a, prompt, found.cold, FIRST_SESSION, FIRST_QUESTION)
        self._say(f"   And, for step 4, with its slot kept and then from the store: "
                  f"{SECOND_QUESTION}")
        prompt = self._document.prompt(SECOND_QUESTION, a)
        found.kept = a.complete(prompt, ANSWER_TOKENS)
        found.same_process = self._ask_from_store(a, prompt)

    def _restart_after_kill(self, a):
        found = self._found
        a.kill()
        successor = self._start("A2")
        self._say(f"2. Worker A is killed with SIGKILL. Process {successor.pid} takes over: "
                  f"{SECOND_QUESTION}")
        found.session = self._store.session(FIRST_SESSION)
        self._say(f"   Session \"{FIRST_SESSION}\", which A left: {found.session.reusable_tokens} "
                  f"of {found.session.tokens} tokens are reusable")
        prompt = self._document.prompt(SECOND_QUESTION, successor)
        found.after_kill = self._ask_from_store(successor, prompt)
        self._show(found.after_kill.answer, found.after_kill.total_ms)
        found.second_chat = self._keep(successor, prompt, found.after_kill.answer, SECOND_SESSION,
                                       SECOND_QUESTION)
        return successor

    def _ask_another_worker(self, b, successor):
        found = self._found
        self._say(f"3. Worker B (process {b.pid}), beside {successor.name} ({successor.pid}), "
                  f"begins another chat: {OTHER_QUESTION}")
        prompt = self._document.prompt(OTHER_QUESTION, b)
        found.matched_tokens = self._store.match(self._write_ids(b, prompt))
        found.other_worker = self._ask_from_store(b, prompt)
        self._show(found.other_worker.answer, found.other_worker.total_ms)
        found.other_chat = self._keep(b, prompt, found.other_worker.answer, OTHER_SESSION,
                                      OTHER_QUESTION)
        found.known_tokens = max(common_length(found.other_chat.ids, chat.ids)
                                 for chat in (found.first_chat, found.second_chat))

    def _count(self):
        found = self._found
        chats = [chat.ids for chat in (found.first_chat, found.second_chat, found.other_chat)]
        found.block_tokens = self._store.block_tokens
        found.needed_blocks = distinct_blocks(chats, found.block_tokens)
        found.verify_ok = self._store.verify()
        found.totals = self._store.totals()
        command, shown = self._store.list_sessions()
        self._say(f"\n$ {command}\n{shown.rstrip()}")

    def _start(self, name):
        settings = self._settings
        worker = Worker(name, settings.python, {
            "model": settings.model_file, "threads": settings.threads,
            "context_tokens": settings.document_tokens + ROOM_TOKENS,
            "slot_directory": settings.slot_directory,
        }, os.path.join(settings.directory, f"{name}.log"))
        self._workers.append(worker)
        # A slot file of one token shows which kind of file this server wants.
        worker.complete(worker.tokenize("probe")[:1], 1)
        worker.save_slot(self._probe(worker))
        return worker

    def _ask_from_store(self, worker, prompt):
        """Export, restore, answer: what a user waits for when nothing is in the worker's slot."""
        restored = f"{worker.name}.restored"
        started = time.perf_counter()
        stored_tokens = self._store.export(
            self._write_ids(worker, prompt), self._path(self._probe(worker)), self._path(restored))
        exported = time.perf_counter()
        worker.restore_slot(restored)
        ready = time.perf_counter()
        answer = worker.complete(prompt, ANSWER_TOKENS)
        os.remove(self._path(restored))
        return Warm(stored_tokens, (exported - started) * 1000, (ready - exported) * 1000, answer)

    def _keep(self, worker, prompt, answer, session, question):
        """Saves the slot and keeps it as a session of the store, which the first chat makes."""
        name = f"{worker.name}.slot"
        saved_tokens = worker.save_slot(name)
        if not self._store.block_tokens:
            self._store.create(self._path(name))
        started = time.perf_counter()
        imported = self._store.import_slot(self._path(name), session, f"question={question}")
        import_ms = (time.perf_counter() - started) * 1000
        return Chat((prompt + answer.token_ids)[:saved_tokens], os.path.getsize(self._path(name)),
                    import_ms, imported)

    def _write_ids(self, worker, ids):
        path = os.path.join(self._settings.directory, f"{worker.name}.ids")
        with open(path, "w", encoding="ascii") as file:
            json.dump(ids, file)
        return path

    def _show(self, answer, first_token_ms):
        self._say(f"   {first_token_ms:,.0f} ms to the first token; {answer.prefilled_tokens} "
                  f"tokens computed, {answer.reused_tokens} reused")
        self._say(f"   \"{' '.join(answer.text.split())}\"")

    def _path(self, filename):
        return os.path.join(self._settings.slot_directory, filename)

    @staticmethod
    def _probe(worker):
        return f"{worker.name}.probe"
