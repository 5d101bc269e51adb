"""The demo behind tools/demo: reads the arguments, prepares, plays the scenario, reports."""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile

import document
import prepare
import report
from document import DocumentError
from engine import EngineError
from scenario import ROOM_TOKENS, Scenario, Settings
from store import EskerError, EskerStore

MODEL_NAME = "SmolLM2-135M-Instruct"
SLOT_BYTES_PER_TOKEN = 23_100  # of this model, in f16
SLOT_FILES = 5  # that may exist at once, and some room
MAX_DOCUMENT_TOKENS = 7500  # the model was trained on 8,192
MEMORY_DIRECTORY = "/dev/shm"
FAILURES = (DocumentError, EngineError, EskerError, prepare.PrepareError, OSError)


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="tools/demo",
        description="Shows on a real llama-server that a document is computed once: not again "
                    "after a SIGKILL, and not by another worker.")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path,
                        help="also write the results into this file")
    parser.add_argument("--document-tokens", metavar="N", type=int, default=2000,
                        help=f"length of the document (default 2000, 64 to {MAX_DOCUMENT_TOKENS})")
    parser.add_argument("--document", metavar="FILE", default=document.DEFAULT_FILE,
                        help=f"a text of your own (default {document.DEFAULT_FILE})")
    parser.add_argument("--threads", metavar="N", type=int, default=len(os.sched_getaffinity(0)),
                        help="threads of each server (default: one for each core)")
    parser.add_argument("--keep", action="store_true", help="keep the store, slot files and logs")
    parser.add_argument("--build", metavar="DIR", type=pathlib.Path, default=prepare.ROOT / "build",
                        help="build directory (default: build)")
    arguments = parser.parse_args()
    if not 64 <= arguments.document_tokens <= MAX_DOCUMENT_TOKENS:
        parser.error(f"--document-tokens {arguments.document_tokens}: "
                     f"expected 64 to {MAX_DOCUMENT_TOKENS}")
    if arguments.threads < 1:
        parser.error(f"--threads {arguments.threads}: expected 1 or more")
    if arguments.json and not arguments.json.absolute().parent.is_dir():
        parser.error(f"--json {arguments.json}: there is no such directory")
    return arguments


@contextlib.contextmanager
def work_directories(build, document_tokens, keep):
    """One directory in the build directory; slot files in memory where there is room.

    Both are removed in the end, except that the first, with the logs, outlives a failure."""
    directory = tempfile.mkdtemp(prefix="demo-", dir=build)
    needed_bytes = SLOT_FILES * (document_tokens + ROOM_TOKENS) * SLOT_BYTES_PER_TOKEN
    in_memory = (os.access(MEMORY_DIRECTORY, os.W_OK)
                 and shutil.disk_usage(MEMORY_DIRECTORY).free >= needed_bytes)
    slots = tempfile.mkdtemp(prefix="esker-demo-", dir=MEMORY_DIRECTORY if in_memory else directory)
    failed = False
    try:
        yield directory, slots
    except FAILURES:
        failed = True
        raise
    finally:
        if keep:
            print(f"\nStore and logs: {directory}\nSlot files: {slots}")
        else:
            shutil.rmtree(slots, ignore_errors=True)
            if failed:
                print(f"demo: store and logs are in {directory}", file=sys.stderr)
            else:
                shutil.rmtree(directory, ignore_errors=True)


def play(arguments):
    build = arguments.build.absolute()
    esker = prepare.build_esker(build)
    python = prepare.python_with_engine(build)
    model = str(prepare.model_file(python))
    with work_directories(build, arguments.document_tokens, arguments.keep) as (directory, slots):
        store = EskerStore(str(esker), os.path.join(directory, "store"), model, MODEL_NAME)
        settings = Settings(str(python), model, arguments.document, arguments.document_tokens,
                            arguments.threads, directory, slots)
        return Scenario(settings, store, lambda line: print(line, flush=True)).run()


def tell(found, json_file):
    """Prints and writes the results; returns the exit code."""
    print("\n" + report.table(found))
    if json_file:
        json_file.write_text(json.dumps(report.fields(found), indent=2) + "\n", encoding="utf-8")
    broken = report.broken_promises(found)
    for line in broken:
        print(f"demo: {line}", file=sys.stderr)
    return 1 if broken else 0


def main():
    arguments = parse_arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    try:
        return tell(play(arguments), arguments.json)
    except FAILURES as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
