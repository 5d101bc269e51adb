"""A worker: one llama-server process, and what the demo asks it over HTTP on the loopback."""

import http.client
import json
import os
import select
import subprocess
import time
import urllib.parse
from dataclasses import dataclass

SLOT = 0  # the servers of the demo have one slot each
START_TIMEOUT_S = 120
REQUEST_TIMEOUT_S = 600


class EngineError(Exception):
    """The engine did not do what it was asked."""


@dataclass
class Answer:
    first_token_ms: float  # wall time from sending the request to the first token
    prefilled_tokens: int  # the server's timings.prompt_n
    reused_tokens: int  # the server's timings.cache_n
    prefill_ms: float  # the server's timings.prompt_ms
    token_ids: list
    text: str


class Worker:
    """A running llama-server. `stop` or `kill` ends its process."""

    def __init__(self, name, python, settings, log_path):
        self.name = name
        self._log_path = log_path
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "server.py")
        settings = dict(settings, parent_pid=os.getpid())
        with open(log_path, "wb") as log:
            self._process = subprocess.Popen(
                [python, script, json.dumps(settings)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        self._connection = None
        try:
            address = urllib.parse.urlsplit(self._wait_for_address())
            self._connection = http.client.HTTPConnection(
                address.hostname, address.port, timeout=REQUEST_TIMEOUT_S)
            if self._call("GET", "/health").get("status") != "ok":
                raise EngineError(f"worker {name}: /health does not say ok; its log: {log_path}")
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self):
        return self._process.pid

    def tokenize_chat(self, messages):
        """The token ids of a chat, with the model's own template, ready to be answered."""
        prompt = self._call("POST", "/apply-template", {"messages": messages})["prompt"]
        return self.tokenize(prompt, special=True)

    def tokenize(self, text, special=False):
        return self._call("POST", "/tokenize", {
            "content": text, "add_special": special, "parse_special": special})["tokens"]

    def detokenize(self, token_ids):
        return self._call("POST", "/detokenize", {"tokens": token_ids})["content"]

    def complete(self, token_ids, max_tokens):
        """Answers at temperature 0, streaming, and notes when the first token came."""
        body = {
            "prompt": token_ids, "n_predict": max_tokens, "temperature": 0, "id_slot": SLOT,
            "cache_prompt": True, "stream": True, "return_tokens": True,
        }
        started = time.perf_counter()
        response = self._send("POST", "/completion", body)
        first_token_ms, ids, text, timings = None, [], "", None
        for event in self._events(response):
            if "error" in event:
                raise EngineError(f"worker {self.name}: {event['error']}")
            if event.get("tokens"):
                if first_token_ms is None:
                    first_token_ms = (time.perf_counter() - started) * 1000
                ids += event["tokens"]
            text += event.get("content", "")
            timings = event.get("timings", timings)
        self._connection.close()  # the server ends a stream's connection; the next call reopens it
        if first_token_ms is None or timings is None:
            raise EngineError(f"worker {self.name}: no token came; its log: {self._log_path}")
        return Answer(first_token_ms, timings["prompt_n"], timings["cache_n"],
                      timings["prompt_ms"], ids, text)

    def save_slot(self, filename):
        """Writes the slot's KV to a file in the slot directory; returns its tokens."""
        return self._call("POST", f"/slots/{SLOT}?action=save", {"filename": filename})["n_saved"]

    def restore_slot(self, filename):
        """Fills the slot from a file. Its answer proves nothing: see Answer.reused_tokens."""
        self._call("POST", f"/slots/{SLOT}?action=restore", {"filename": filename})

    def kill(self):
        """SIGKILL: nothing is flushed, nothing is closed in order."""
        if self._connection is not None:
            self._connection.close()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    stop = kill  # an idle server holds nothing that an orderly end would save

    def _wait_for_address(self):
        ready, _, _ = select.select([self._process.stdout], [], [], START_TIMEOUT_S)
        line = self._process.stdout.readline().decode().strip() if ready else ""
        if not line:
            raise EngineError(f"worker {self.name}: llama-server did not start; "
                              f"its log: {self._log_path}")
        return line

    def _send(self, method, path, body=None):
        data = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, path, data, {"Content-Type": "application/json"})
            response = self._connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise EngineError(f"worker {self.name}: {method} {path}: {error}; "
                              f"its log: {self._log_path}") from error
        if response.status != 200:
            raise EngineError(f"worker {self.name}: {method} {path}: status {response.status}: "
                              f"{response.read().decode(errors='replace')}")
        return response

    def _call(self, method, path, body=None):
        return json.loads(self._send(method, path, body).read())

    @staticmethod
    def _events(response):
        """The JSON documents of a server-sent event stream."""
        for line in response:
            if line.startswith(b"data: ") and line.strip() != b"data: [DONE]":
                yield json.loads(line[len(b"data: "):])
