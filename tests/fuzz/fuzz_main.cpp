/// Drives a fuzz target without libFuzzer: the corpus first, then mutations of it, or files.

#include <unistd.h>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include "fuzz/fuzz_target.hpp"
#include "fuzz/kept_inputs.hpp"
#include "fuzz/mutator.hpp"

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

using esker::fuzz::Bytes;

constexpr unsigned hang_s = 120;  // nobody's expected duration: only what ends a hang
constexpr const char* usage =
    "usage: TARGET [--seed N] [--rounds N | --round N] [--corpus DIR] [--save DIR] [--keep DIR] "
    "[FILE…]\n"
    "  --rounds N   so many mutations of the corpus; the default is 1000\n"
    "  --round N    only this one, to see a failure again\n"
    "  --seed N     another series; 0 takes one that was never tried\n"
    "  --corpus DIR runs the files in it first: inputs that once were new to libFuzzer\n"
    "  --save DIR   writes the inputs there, those of --corpus too, instead of running them: a\n"
    "               corpus for libFuzzer\n"
    "  --keep DIR   packs the FILEs into that directory, for --corpus\n"
    "  FILE         runs what is in these files instead\n";

struct Arguments {
  std::uint64_t seed = 1;
  std::uint64_t first = 0;
  std::uint64_t rounds = 1000;
  std::string save;
  std::string corpus;
  std::string keep;
  std::vector<std::string> files;
};

/// What a handler says when this input is the last one; written before each of them.
char now[256] = "fuzz: before the first input\n";

void say_where() { static_cast<void>(!::write(STDERR_FILENO, now, std::strlen(now))); }

void on_signal(int number) {
  if (number == SIGALRM) {
    constexpr std::string_view hangs = "fuzz: this input hangs\n";
    static_cast<void>(!::write(STDERR_FILENO, hangs.data(), hangs.size()));
  }
  say_where();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void watch() {
  std::signal(SIGALRM, &on_signal);
  std::signal(SIGABRT, &on_signal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(&say_where);
    return;  // the sanitizer's own report says more about these
  }
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(number, &on_signal);
}

bool parse(int argc, char** argv, Arguments& out) {
  const auto number = [&](int& i, std::uint64_t& value) {
    if (++i >= argc) return false;
    const std::string_view text = argv[i];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--seed") {
      if (!number(i, out.seed)) return false;
    } else if (word == "--rounds") {
      if (!number(i, out.rounds)) return false;
    } else if (word == "--round") {
      if (!number(i, out.first)) return false;
      out.rounds = 1;
    } else if (word == "--save" || word == "--corpus" || word == "--keep") {
      if (++i >= argc) return false;
      (word == "--save" ? out.save : word == "--keep" ? out.keep : out.corpus) = argv[i];
    } else if (word.substr(0, 1) == "-") {
      return false;
    } else {
      out.files.emplace_back(word);
    }
  }
  return true;
}

void run(const Bytes& input) {
  ::alarm(hang_s);
  // A copy of exactly this size, so that a sanitizer sees any step beyond it.
  const Bytes copy(input.begin(), input.end());
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
  ::alarm(0);
}

bool save(const std::string& path, const Bytes& input) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(input.data()),
            static_cast<std::streamsize>(input.size()));
  out.close();
  if (!out) std::fprintf(stderr, "fuzz: %s cannot be written\n", path.c_str());
  return static_cast<bool>(out);
}

Bytes read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + " cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

Bytes read_kept(const std::string& path) { return esker::fuzz::unpack(read(path)); }

/// Packs inputs that libFuzzer found into `directory`, by their own names.
int keep_files(const std::vector<std::string>& files, const std::string& directory) {
  for (const std::string& path : files) {
    const std::string name = std::filesystem::path(path).filename().string().substr(0, 12);
    const Bytes packed = esker::fuzz::pack(read(path));
    if (esker::fuzz::unpack(packed) != read(path)) throw std::runtime_error(path + " differs");
    if (!save(directory + '/' + name, packed)) return 1;
  }
  return 0;
}

int run_files(const std::vector<std::string>& files, Bytes (*reader)(const std::string&)) {
  for (const std::string& path : files) {
    const Bytes input = reader(path);
    std::snprintf(now, sizeof now, "fuzz: input %s\n", path.c_str());
    run(input);
  }
  std::printf("fuzz: %zu files, %llu accepted\n", files.size(),
              static_cast<unsigned long long>(esker::fuzz::accepted()));
  return 0;
}

/// Every input that is right must be taken as such.
bool run_corpus(const std::vector<Bytes>& corpus) {
  for (std::size_t i = 0; i < corpus.size(); ++i) {
    const std::uint64_t before = esker::fuzz::accepted();
    std::snprintf(now, sizeof now, "fuzz: input %zu of the corpus\n", i);
    run(corpus[i]);
    if (esker::fuzz::accepted() == before + 1) continue;
    std::fprintf(stderr, "fuzz: input %zu of the corpus is valid and was refused\n", i);
    return false;
  }
  return !corpus.empty();
}

int run_mutations(const Arguments& arguments, esker::fuzz::Mutator& mutator) {
  const auto seed = static_cast<unsigned long long>(arguments.seed);
  std::printf("fuzz: seed %llu\n", seed);
  std::fflush(stdout);
  for (std::uint64_t i = 0; i < arguments.rounds; ++i) {
    const std::uint64_t round = arguments.first + i;
    std::snprintf(now, sizeof now, "fuzz: seen again with --seed %llu --round %llu\n", seed,
                  static_cast<unsigned long long>(round));
    run(mutator.input(arguments.seed, round));
  }
  std::printf("fuzz: %llu rounds from %zu inputs, %llu accepted\n",
              static_cast<unsigned long long>(arguments.rounds), mutator.corpus().size(),
              static_cast<unsigned long long>(esker::fuzz::accepted()));
  return 0;
}

int save_inputs(const Arguments& arguments, esker::fuzz::Mutator& mutator) {
  for (const std::string& kept : esker::fuzz::files_in(arguments.corpus)) {
    const std::string name = std::filesystem::path(kept).filename().string();
    if (!save(arguments.save + "/kept-" + name, read_kept(kept))) return 1;
  }
  for (std::size_t i = 0; i < mutator.corpus().size(); ++i) {
    if (!save(arguments.save + "/corpus-" + std::to_string(i), mutator.corpus()[i])) return 1;
  }
  for (std::uint64_t round = arguments.first; round < arguments.first + arguments.rounds; ++round) {
    const std::string name = "/round-" + std::to_string(round);
    if (!save(arguments.save + name, mutator.input(arguments.seed, round))) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    std::fputs(usage, stderr);
    return 2;
  }
  if (arguments.seed == 0) arguments.seed = std::random_device()();
  try {
    watch();
    if (!arguments.keep.empty()) return keep_files(arguments.files, arguments.keep);
    if (!arguments.files.empty()) return run_files(arguments.files, &read);
    esker::fuzz::Mutator mutator(esker::fuzz::corpus());
    if (!arguments.save.empty()) return save_inputs(arguments, mutator);
    if (!arguments.corpus.empty()) run_files(esker::fuzz::files_in(arguments.corpus), &read_kept);
    if (!run_corpus(mutator.corpus())) return 1;
    return run_mutations(arguments, mutator);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz: %s\n", error.what());
    say_where();
    return 1;
  }
}
