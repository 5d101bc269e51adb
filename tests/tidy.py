#!/usr/bin/env python3
"""Checks the rules of CONTRIBUTING.md that no compiler knows. Standard library only.

    tests/tidy.py               checks the tree: one line per finding, exit 1 if any
    tests/tidy.py --self-test   shows that every rule finds a bad sample and leaves a good one
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Each may include only what stands to its left.
MODULES = ("base", "codec", "format", "region", "sync", "index", "catalog", "archive", "store",
           "session", "cache", "snapshot")
MAX_COLUMNS = 100
MAX_FILE_LINES = 500
MAX_PUBLIC_HEADER_LINES = 200
MAX_FUNCTION_LINES = 70
MAX_DOC_LINES = {"README.md": 150, "CONTRIBUTING.md": 100, "doc/architecture.md": 200,
                 "doc/format.md": 250, "doc/session_format.md": 150, "doc/cache_format.md": 150,
                 "doc/snapshot_format.md": 250}
FORMAT_DOCS = ("doc/format.md", "doc/session_format.md", "doc/cache_format.md",
               "doc/snapshot_format.md")
CLASS_BLOCK = ("Threads:", "Lifetime:", "Errors:", "Cost:")
INVARIANT_MODULES = ("sync", "index", "catalog", "archive", "store", "session", "cache",
                     "snapshot")
TEXT_SUFFIXES = {".cpp", ".hpp", ".c", ".h", ".py", ".md", ".build", ".txt", ".sh", ".scd", ".bash",
                 ".zsh", ".fish", ".yml", ".json", ""}
CXX_SUFFIXES = {".cpp", ".hpp"}
# Spelled in pieces, so that this file passes its own check.
BANNED_WORDS = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}~-])/(wo" r"rk|ro" r"ot|ho" r"me)/")


class File:
    """One file of the tree: its path, its text, and the text without comments and strings."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.lines = text.split("\n")[:-1] if text.endswith("\n") else text.split("\n")
        self.suffix = pathlib.PurePosixPath(path).suffix
        self.is_cxx = self.suffix in CXX_SUFFIXES
        self.is_public = path.startswith("include/esker/")
        parts = path.split("/")
        self.module = parts[1] if parts[0] == "src" and len(parts) > 2 else None
        self._code = None

    @property
    def code(self):
        if self._code is None:
            self._code = blank_out(self.text)
        return self._code


def blank_out(text):
    """The same text, same lines, with comments and the insides of literals replaced by spaces."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"'
        r'|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'', re.S)

    def spaces(match):
        inside = re.sub(r"[^\n]", " ", match.group(0))
        return f'"{inside[1:-1]}"' if match.group(0)[0] in "\"'R" and len(inside) > 1 else inside

    return token.sub(spaces, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


# ---- Rules. Each takes a File and yields (line, message). ----------------------------------------


def rule_columns(file):
    if file.suffix == ".md":
        return  # tables and addresses cannot be broken
    for number, line in enumerate(file.lines, 1):
        if len(line) > MAX_COLUMNS:
            yield number, f"{len(line)} columns, at most {MAX_COLUMNS}"


def rule_spaces(file):
    for number, line in enumerate(file.lines, 1):
        if line != line.rstrip():
            yield number, "space at the end of the line"
        if "\t" in line and file.suffix != ".scd":
            yield number, "tab"
    if file.text and not file.text.endswith("\n"):
        yield len(file.lines), "no newline at the end"


def rule_banned_words(file):
    for number, line in enumerate(file.lines, 1):
        if found := BANNED_WORDS.search(line):
            yield number, f"{found.group(1)}: finish it or file an issue"


def rule_machine_paths(file):
    for number, line in enumerate(file.lines, 1):
        if MACHINE_PATH.search(line):
            yield number, "a path of somebody's machine"


def rule_file_size(file):
    limit = MAX_DOC_LINES.get(file.path)
    if file.is_public:
        limit = MAX_PUBLIC_HEADER_LINES
    elif file.is_cxx or file.suffix == ".py":
        limit = MAX_FILE_LINES
    if limit and len(file.lines) > limit:
        yield limit + 1, f"{len(file.lines)} lines, at most {limit}"


def rule_pragma_once(file):
    if file.suffix == ".hpp" and "#pragma once" not in file.lines[:1]:
        yield 1, "a header starts with #pragma once"


def rule_module_order(file):
    if not file.is_cxx:
        return
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]+[<"]([^>"]+)[>"]', file.text, re.M):
        target, number = match.group(1), line_of(file.text, match.start())
        where = target.split("/")[0]
        quoted = '"' in match.group(0)
        if target.startswith("../"):
            yield number, f"include {target} by its full name"
        elif file.is_public and (quoted or where in MODULES):
            yield number, f"a public header includes only <esker/...>, not {target}"
        elif file.module and where in MODULES and file.module in MODULES:
            if MODULES.index(where) > MODULES.index(file.module):
                yield number, f"{file.module} may not include {where}: {' < '.join(MODULES)}"
        elif file.module and quoted and where not in MODULES and where != "esker":
            yield number, f"{target} belongs to no module of src/"
        elif file.path.startswith("tools/") and where in MODULES and "/" in target:
            yield number, f"tools use only <esker/...>, not {target}"


def rule_libraries(file):
    """CLI11 compiles slowly, so few files have it; the library has none of what the tools use."""
    for match in re.finditer(r"^#include <(CLI|fmt|nlohmann|catch2)/", file.text, re.M):
        library, number = match.group(1), line_of(file.text, match.start())
        if file.is_public or file.module:
            yield number, f"the library does not use {library}"
        elif library == "CLI" and not re.fullmatch(r"tools/args(_\w+)?\.[ch]pp", file.path):
            yield number, "only tools/args*.cpp include CLI11"


def rule_known_module(file):
    if file.module and file.module not in MODULES:
        yield 1, f"src/{file.module} is not in the module order: {' < '.join(MODULES)}"


def rule_class_block(file):
    if not file.is_public:
        return
    for number, line in enumerate(file.lines, 1):
        found = re.match(r"(?:template <.*> )?class (?:\[\[\w+\]\] )?(\w+)[^;]* \{", line)
        if not found:
            continue
        first = number - 1
        while first > 0 and file.lines[first - 1].startswith("///"):
            first -= 1
        block = "\n".join(file.lines[first:number - 1])
        absent = [word for word in CLASS_BLOCK if f"/// {word}" not in block]
        if absent:
            yield number, f"class {found.group(1)} does not say {' '.join(absent)}"


def rule_invariants(file):
    if file.module not in INVARIANT_MODULES or file.suffix != ".cpp":
        return
    opening = []
    for line in file.lines:
        if not line.startswith("//"):
            break
        opening.append(line)
    if not any("Invariants" in line for line in opening):
        yield 1, "opens with a comment that lists its Invariants"


def rule_test_names(file):
    if not file.path.startswith("tests/") or file.suffix != ".cpp":
        return
    name = r'\bTEST_CASE(?:_METHOD\(\s*\w+\s*,|\()\s*"((?:\\.|[^"\\])*)"'
    for match in re.finditer(name, file.text):
        if " " not in match.group(1):
            yield line_of(file.text, match.start()), f'"{match.group(1)}" is not a sentence'


def rule_function_size(file):
    if not file.is_cxx:
        return
    for name, first, last in functions(file.code):
        if last - first + 1 > MAX_FUNCTION_LINES:
            yield first, f"{name} has {last - first + 1} lines, at most {MAX_FUNCTION_LINES}"


# ---- Functions: a brace counter that knows which braces open a function -------------------------


LABEL = r"(?:\s*(?:public|private|protected)\s*:(?!:))"


def functions(code):
    """Yields (name, first line, last line) of every function body that is not inside another."""
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)),
                  code, flags=re.M)
    offset, statement, parentheses = 0, 0, 0
    while offset < len(code):
        char = code[offset]
        parentheses += (char == "(") - (char == ")")
        if char == "{" and parentheses == 0:
            name = function_name(code[statement:offset])
            end = closing_brace(code, offset)
            if name and re.match(r"\s*[,{]", code[end + 1:]):
                offset = end  # a brace in the list of a constructor's initialisers
            elif name:
                start = statement + re.match(LABEL + r"?\s*", code[statement:offset]).end()
                yield name, line_of(code, start), line_of(code, end)
                offset, statement = end, end + 1
            else:
                statement = offset + 1
        elif char in "};" and parentheses == 0:
            statement = offset + 1
        offset += 1


def closing_brace(code, opening):
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, opening):
        depth += 1 if match.group(0) == "{" else -1
        if depth == 0:
            return match.start()
    return len(code) - 1


def function_name(head):
    """The name in a function's head, or None if these words open something else."""
    head = re.sub("^" + LABEL, "", head)
    head = re.sub(r"^\s*template\s*<[^{;]*?>(?=\s*[\w\[])", "", head)
    head = re.sub(r'^\s*extern\s*"[^"]*"', "", head)
    before = head.split("(")[0]
    if "(" not in head or ("=" in before and "operator" not in before):
        return None
    if re.match(r"\s*(?:namespace|class|struct|enum|union)\b", head):
        return None
    operator = r"(?:\w+::)*operator\s*(?:\(\s*\)|[^\s(]+)"
    found = re.search(rf"({operator}|[\w:~]+)\s*\(", head)
    return found.group(1) if found else None


# ---- On-disk structs against doc/format.md -------------------------------------------------------

CXX_TYPES = {"std::uint8_t": "u8", "std::uint16_t": "u16", "std::uint32_t": "u32",
             "std::uint64_t": "u64", "std::int32_t": "i32", "std::int64_t": "i64", "char": "char",
             "std::byte": "u8"}


def short_type(text, constants):
    """"u8[16]" for "std::array<std::uint8_t, 16>"."""
    text = re.sub(r"^alignas\(\d+\)\s*", "", text.strip())
    if found := re.fullmatch(r"std::array<\s*([\w:]+)\s*,\s*(\w+)\s*>", text):
        count = constants.get(found.group(2), found.group(2))
        return f"{CXX_TYPES.get(found.group(1), found.group(1))}[{count}]"
    return CXX_TYPES.get(text, text)


def structs_in_code(files):
    """{struct: (size, {field: (offset, type)})} from the static_asserts of src/format/*.hpp."""
    structs = {}
    headers = [file for file in files if file.module == "format" and file.suffix == ".hpp"]
    code = "\n".join(file.code for file in headers)
    constants = dict(re.findall(r"constexpr [\w:]+ (\w+) = (\d+);", code))
    for name, size in re.findall(r"static_assert\(\s*sizeof\((\w+)\)\s*==\s*([\d']+)", code):
        fields = {}
        body = re.search(rf"\bstruct {name} {{(.*?)\n}};", code, re.S)
        member = r"^  ((?:alignas\(\d+\) )?[^\n();]+?) (\w+)(?: = [^;]*|{})?;"
        for kind, field in re.findall(member, body.group(1) if body else "", re.M):
            offset = re.search(
                rf"static_assert\(\s*offsetof\({name}, {field}\)\s*==\s*([\d']+)", code)
            where = int(offset.group(1).replace("'", "")) if offset else "no asserted offset"
            fields[field] = (where, short_type(kind, constants))
        structs[name] = (int(size.replace("'", "")), fields)
    return structs


def structs_in_document(text):
    """The same from headings "### `Name`, 128 bytes" and the tables below them."""
    structs, name = {}, None
    for line in text.split("\n"):
        if found := re.match(r"#+ .*`(\w+)`, ([\d,]+) bytes", line):
            name = found.group(1)
            structs[name] = (int(found.group(2).replace(",", "")), {})
        elif line.startswith("#"):
            name = None
        elif name and (row := re.match(r"\|\s*(\d+)\s*\|\s*([^|]*?)\s*\|\s*`(\w+)`", line)):
            structs[name][1][row.group(3)] = (int(row.group(1)), row.group(2))
    return structs


def check_format(files):
    """Findings where the structs and their description differ, in either direction."""
    code = structs_in_code(files)
    described = {name: (file.path, struct) for file in files if file.path in FORMAT_DOCS
                 for name, struct in structs_in_document(file.text).items()}
    for name in sorted(code.keys() | described.keys()):
        if name not in described:
            yield FORMAT_DOCS[0], 1, f"no page describes {name}"
        elif name not in code:
            yield described[name][0], 1, f"describes {name}, which src/format does not assert"
        else:
            yield from compare_struct(name, code[name], *described[name])


def compare_struct(name, code, page, described):
    if code[0] != described[0]:
        yield page, 1, f"{name} has {code[0]} bytes in src/format, {described[0]} here"
    for field in sorted(code[1].keys() | described[1].keys()):
        here, there = described[1].get(field), code[1].get(field)
        if here != there:
            yield page, 1, f"{name}.{field} is {there} in src/format, {here} here"


# ---- Running -------------------------------------------------------------------------------------

RULES = (rule_columns, rule_spaces, rule_banned_words, rule_machine_paths, rule_file_size,
         rule_pragma_once, rule_module_order, rule_libraries, rule_known_module, rule_class_block,
         rule_invariants, rule_test_names, rule_function_size)


def check(files):
    """All findings as (path, line, message), sorted."""
    findings = [(file.path, line, message) for file in files for rule in RULES
                for line, message in rule(file)]
    findings.extend(check_format(files))
    return sorted(findings)


def tree():
    """The text files of the project: what git knows or would add, else what is there."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        names = listed.stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):  # no git, or an unpacked archive
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                 if not path.relative_to(ROOT).parts[0].startswith((".git", "build"))]
    for name in sorted(set(filter(None, names))):
        path = ROOT / name
        if path.is_file() and path.suffix in TEXT_SUFFIXES and name != "LICENSE":
            data = path.read_bytes()
            if b"\0" not in data:
                yield File(name, data.decode(errors="replace"))


def main():
    if sys.argv[1:] == ["--self-test"]:
        import tidy_test  # beside this file
        return tidy_test.main()
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    files = list(tree())
    findings = check(files)
    for path, line, message in findings:
        print(f"{path}:{line}: {message}")
    print(f"tidy: {len(files)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
