#!/usr/bin/env python3
"""What lossy snapshots cost a real model, in perplexity.

A llama-server reads a context and saves it; the context goes through a store and a snapshot and
back into the server; then the server is asked how likely it finds the text that follows. The
probability of each token is the server's own, one request per token, so that nothing of the
restored context is computed again (checked by the server's count of reused tokens).

    bench/lossy_perplexity.py [--context-tokens N] [--text-tokens N] [--document FILE] [--json FILE]
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "demo_parts"))

import document  # noqa: E402
import engine  # noqa: E402
import prepare  # noqa: E402

FIRST_PROBABILITIES = 1000  # of the most likely tokens; all of them for a token that is not there
ALL_PROBABILITIES = 1 << 20
KINDS = {"exact": [], "q8": ["--lossy", "q8"], "q4": ["--lossy", "q4"]}


class Judge(engine.Worker):
    """A worker that tells how likely it finds a token."""

    def log_probability(self, token_ids, token):
        """Of `token` behind `token_ids`, and how many of these the server did not compute."""
        for most in (FIRST_PROBABILITIES, ALL_PROBABILITIES):
            answer = self._call("POST", "/completion", {
                "prompt": token_ids, "n_predict": 1, "n_probs": most, "temperature": 0,
                "id_slot": engine.SLOT, "cache_prompt": True})
            for entry in answer["completion_probabilities"][0]["top_logprobs"]:
                if entry["id"] == token:
                    return entry["logprob"], answer["timings"]["cache_n"]
        raise engine.EngineError(f"the server does not tell of token {token}")


def perplexity(worker, slot_file, context, text):
    worker.restore_slot(slot_file)
    total = 0.0
    for index, token in enumerate(text):
        before = context + text[:index]
        log_probability, reused = worker.log_probability(before, token)
        if index > 0 and reused < len(context):
            raise engine.EngineError(f"only {reused} of {len(context)} tokens were reused")
        total += log_probability
    return math.exp(-total / len(text))


def esker(binary, *words):
    done = subprocess.run([str(binary), *map(str, words), "--json"], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise SystemExit(f"esker {words[0]}: {done.stderr or done.stdout}")
    return json.loads(done.stdout)


def through_snapshot(binary, folder, kind, options):
    """The slot file after a store, a snapshot and another store; and the export's own report."""
    snapshot = folder / f"{kind}.esnap"
    report = esker(binary, "export", folder / "exact.store", "--codec", "zstd", *options,
                   "-o", snapshot)
    esker(binary, "import", "--create", folder / f"{kind}.copy", snapshot)
    slot_file = f"{kind}.slot"
    esker(binary, "export", folder / f"{kind}.copy", "--format", "llama",
          "--like", folder / "saved.slot", "--ids", folder / "context.json", "-o",
          folder / slot_file)
    return slot_file, report, snapshot.stat().st_size


def measure(arguments, binary, python, folder):
    wanted = arguments.context_tokens + arguments.text_tokens
    settings = {"model": str(prepare.model_file(python)), "threads": 2,
                "slot_directory": str(folder), "context_tokens": wanted + 64}
    worker = Judge("judge", str(python), settings, str(folder / "server.log"))
    try:
        ids = worker.tokenize(pathlib.Path(arguments.document).read_text(encoding="utf-8"))
        if len(ids) < wanted:
            raise SystemExit(f"{arguments.document}: {len(ids)} tokens, {wanted} are needed")
        context, text = ids[:arguments.context_tokens], ids[arguments.context_tokens:wanted]
        worker.complete(context + text[:1], 1)
        worker.save_slot("saved.slot")
        (folder / "context.json").write_text(json.dumps(context))
        esker(binary, "create", folder / "exact.store", "--like", folder / "saved.slot",
              "--model", "name=smollm2-135m", "--capacity", "1GiB")
        esker(binary, "import", folder / "exact.store", folder / "saved.slot", "--assume-model")
        rows = []
        for kind, options in KINDS.items():
            slot_file, report, size = through_snapshot(binary, folder, kind, options)
            value = perplexity(worker, slot_file, context, text)
            rows.append({"kind": kind, "perplexity": value, "snapshot_bytes": size,
                         "export": report})
            change = value / rows[0]["perplexity"] - 1
            print(f"{kind:6} perplexity {value:.5f}  {change:+.3%}  "
                  f"{size / rows[0]['snapshot_bytes']:.3f} of the exact snapshot", flush=True)
        return rows
    finally:
        worker.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--context-tokens", type=int, default=2000)
    parser.add_argument("--text-tokens", type=int, default=2000)
    parser.add_argument("--document", default=document.DEFAULT_FILE)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    build = ROOT / "build"
    binary = prepare.build_esker(build)
    python = prepare.python_with_engine(build)
    with tempfile.TemporaryDirectory(dir=build) as folder:
        rows = measure(arguments, binary, python, pathlib.Path(folder))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
