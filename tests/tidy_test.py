"""Shows that every rule of tidy.py finds a bad sample and leaves a good one alone."""

import re
import sys
import unittest

import tidy

BANNED = "TO" + "DO"
BLOCK = ("/// What.\n/// Threads:  any.\n/// Lifetime: long.\n/// Errors:   none.\n"
         "/// Cost:     none.\n")

STRUCT = """#pragma once
inline constexpr std::size_t how_many = 4;
struct Entry {
  std::uint32_t magic;
  alignas(64) std::array<std::uint64_t, how_many> sums;
};
static_assert(sizeof(Entry) == 128);
static_assert(offsetof(Entry, magic) == 0);
static_assert(offsetof(Entry, sums) == 64);
"""

TABLE = """### `Entry`, 128 bytes
| offset | type | field | meaning |
|---|---|---|---|
| 0 | u32 | `magic` | who |
| 64 | u64[4] | `sums` | what |
"""


def body(lines):
    return "  f();\n" * (lines - 2)


def function(lines, head="int f()"):
    return f"{head} {{\n{body(lines)}}}\n"


# rule: (path, bad text, words of the finding, good text)
SAMPLES = {
    "rule_columns": ("src/base/a.cpp", "x" * 101 + "\n", "101 columns", "…" * 100 + "\n"),
    "rule_spaces": ("src/base/a.cpp", "x \n", "space at the end", "x\n"),
    "rule_banned_words": ("src/base/a.cpp", f"// {BANNED}: later\n", BANNED, "// todos\n"),
    "rule_machine_paths": ("doc/a.md", "see /ro" + "ot/esker/x\n", "machine", "see leaf/root/x\n"),
    "rule_file_size": ("src/base/a.cpp", "\n" * 501, "501 lines", "\n" * 500),
    "rule_pragma_once": ("src/base/a.hpp", "// first\n#pragma once\n", "pragma", "#pragma once\n"),
    "rule_module_order": ("src/region/a.cpp", '#include "store/core.hpp"\n', "may not include",
                          '#include "format/b.hpp"\n#include "region/c.hpp"\n#include <vector>\n'),
    "rule_libraries": ("tools/main.cpp", "#include <CLI/CLI.hpp>\n", "only tools/args*.cpp",
                       "#include <fmt/format.h>\n"),
    "rule_known_module": ("src/policy/a.cpp", "\n", "module order", None),
    "rule_class_block": ("include/esker/a.hpp", "/// What.\nclass Store {\n", "Threads:",
                         BLOCK + "class Store {\n"),
    "rule_invariants": ("src/sync/a.cpp", "#include <x>\n// Invariants: none\n", "Invariants",
                        "// Pins.\n// Invariants:\n//  1. one\n#include <x>\n"),
    "rule_test_names": ("tests/a_test.cpp", 'TEST_CASE("lookup", "[a]") {\n', "not a sentence",
                        'TEST_CASE("a miss is empty", "[a]") {\n'),
    "rule_function_size": ("src/base/a.cpp", function(71), "f has 71 lines", function(70)),
}


def findings(path, text, rule=None):
    file = tidy.File(path, text)
    rules = [getattr(tidy, rule)] if rule else tidy.RULES
    return [message for one in rules for _, message in one(file)]


class Rules(unittest.TestCase):
    def test_every_rule_has_a_sample(self):
        self.assertEqual({rule.__name__ for rule in tidy.RULES}, set(SAMPLES))

    def test_a_bad_tree_is_reported_with_file_and_line(self):
        found = tidy.check([tidy.File("src/base/a.cpp", "ok\nx \n")])
        self.assertEqual(found, [("src/base/a.cpp", 2, "space at the end of the line")])

    def test_more_includes_that_are_refused(self):
        for path, text in (("include/esker/a.hpp", '#include "base/bytes.hpp"\n'),
                           ("include/esker/a.hpp", "#include <base/bytes.hpp>\n"),
                           ("tools/a.cpp", '#include "store/core.hpp"\n'),
                           ("src/base/a.cpp", '#include "../format/b.hpp"\n'),
                           ("src/base/a.cpp", '  #  include "format/b.hpp"\n')):
            self.assertTrue(findings(path, text, "rule_module_order"), text)

    def test_more_sizes_that_are_refused(self):
        for path, lines in (("include/esker/a.hpp", 201), ("README.md", 151), ("tests/a.py", 501)):
            self.assertTrue(findings(path, "\n" * lines, "rule_file_size"), path)


def rule_test(rule):
    path, bad, words, good = SAMPLES[rule]

    def test(self):
        self.assertRegex("\n".join(findings(path, bad, rule)), re.escape(words))
        if good is not None:
            self.assertEqual(findings(path, good, rule), [])

    return test


for one_rule in SAMPLES:
    setattr(Rules, f"test_{one_rule}", rule_test(one_rule))


class FunctionCounter(unittest.TestCase):
    def measured(self, text):
        return [(name, last - first + 1)
                for name, first, last in tidy.functions(tidy.blank_out(text))]

    def test_heads_that_are_functions(self):
        for head, name in (("int f()", "f"), ("A::A(int a) : a_(a), b_{a}, c_{1}", "A::A"),
                           ("bool operator==(const A& a) const noexcept", "operator=="),
                           ("void A::operator()(int x) const", "A::operator()"),
                           ("template <class T>\nauto f(T a) -> int", "f"),
                           ("A::~A()", "A::~A"), ('extern "C" int g(void)', "g"),
                           ("[[nodiscard]] Result<int> f(Range r = {}) noexcept", "f")):
            text = function(9, head)
            lines = text.count("\n")
            self.assertEqual(self.measured(text), [(name, lines)], head)

    def test_what_is_no_function(self):
        for text in ("namespace a {\nint x = f(1);\n}\n", "struct A {\n  int f() const;\n};\n",
                     "constexpr std::array<int, 2> a{\n1,\n2};\n", "enum class A : int {\n a\n};\n",
                     "#define A(x) {\\\n  f(x); }\n",
                     "template <class T>\nconcept C = requires(T t) {\n  t.f();\n};\n"):
            self.assertEqual(self.measured(text), [], text)

    def test_methods_inside_a_class_are_measured_one_by_one(self):
        methods = function(5) + function(8, "void g() const")
        text = f"class A {{\n public:\n{methods}\n private:\n  int x_ = 0;\n}};\n"
        self.assertEqual(self.measured(text), [("f", 5), ("g", 8)])

    def test_braces_in_literals_and_comments_do_not_count(self):
        text = "int f() {\n  g(\"}}\", '}', R\"x(}})x\", 1'000);  // }\n  /* } */\n  h();\n}\n"
        self.assertEqual(self.measured(text), [("f", 5)])

    def test_lambdas_belong_to_the_function_around_them(self):
        text = "void f() {\n  run([&](int x) {\n    g(x);\n  });\n}\nint h() {\n}\n"
        self.assertEqual(self.measured(text), [("f", 5), ("h", 2)])


class OnDiskStructs(unittest.TestCase):
    def compare(self, code, table):
        files = [tidy.File("src/format/a.hpp", code), tidy.File("doc/format.md", table)]
        return [message for _, _, message in tidy.check_format(files)]

    def test_equal_ones_are_silent(self):
        self.assertEqual(self.compare(STRUCT, TABLE), [])

    def test_each_difference_is_found(self):
        for old, new in (("| 64 |", "| 72 |"), ("u64[4]", "u64[5]"), ("`sums`", "`sum`"),
                         ("| 0 | u32 | `magic` | who |\n", ""), ("128 bytes", "96 bytes"),
                         ("`Entry`", "`Other`")):
            self.assertIn(old, TABLE)
            self.assertTrue(self.compare(STRUCT, TABLE.replace(old, new)), new)

    def test_a_field_without_an_asserted_offset_is_found(self):
        code = STRUCT.replace("static_assert(offsetof(Entry, sums) == 64);\n", "")
        self.assertIn("no asserted offset", "\n".join(self.compare(code, TABLE)))

    def test_a_missing_document_is_found(self):
        self.assertEqual(len(list(tidy.check_format([tidy.File("src/format/a.hpp", STRUCT)]))), 1)


def main():
    result = unittest.main(module=__name__, argv=[sys.argv[0]], exit=False).result
    return 0 if result.wasSuccessful() else 1
