"""A llama-server in a process of its own: what engine.py starts for each worker."""

import ctypes
import json
import os
import signal
import sys

import xllamacpp

PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid):
    """Lets the kernel end this process when the demo ends, whatever way it ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent_pid:  # it was gone before the call above
        sys.exit(1)


def parameters(settings):
    params = xllamacpp.CommonParams()
    params.model.path = settings["model"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # the kernel picks a free one
    params.n_ctx = settings["context_tokens"]
    params.n_parallel = 1
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.slot_save_path = os.path.join(settings["slot_directory"], "")
    # The server's own prompt cache in RAM is off: whatever is reused comes from the slot.
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    return params


def main():
    settings = json.loads(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    die_with_parent(settings["parent_pid"])
    # The engine logs to both streams; the parent's pipe carries one line, the address.
    address_pipe = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    server = xllamacpp.Server(parameters(settings))
    print(server.listening_address, file=address_pipe, flush=True)
    address_pipe.close()
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
