#pragma once

#include <array>
#include <string>
#include <string_view>

namespace esker::cli {

/// What the help shows of a command, besides its options.
struct Verb {
  std::string_view name;  ///< "session ls" for a command within `session`
  std::string_view group;
  std::string_view operands;
  std::string_view summary;
  std::string_view examples;
  std::string_view alias = {};  ///< what users of other tools type
};

inline constexpr auto verbs = std::to_array<Verb>({
    {"info", "Look", "STORE|FILE", "Show what a store, or a snapshot, is made for and holds",
     "  esker info chat\n"
     "  esker info chat.esnap\n"
     "  esker info ./llama.esker --json\n"},
    {"ls", "Look", "[STORE]", "List the stores in the home, or the paths in one store",
     "  esker ls\n"
     "  esker ls chat\n"
     "  esker ls chat --sort tokens --json\n"},
    {"match", "Look", "STORE",
     "Tell how many leading tokens of a prompt are stored; exit 1 if none",
     "  esker match chat --ids prompt.json\n"
     "  curl -s localhost:8080/tokenize -d '{\"content\": \"Hi\"}' | esker match chat --ids -\n"},
    {"stat", "Look", "[STORE]", "Show what a store holds, and its counters",
     "  esker stat chat\n"
     "  esker stat chat --json\n"
     "  esker stat --prometheus -o /var/lib/node_exporter/esker.prom\n"},
    {"top", "Look", "[STORE]", "Watch all stores in the home, or one; q ends it",
     "  esker top\n"
     "  esker top chat --interval 5s\n"
     "  esker top chat -n 10 --json\n"},
    {"report", "Look", "STORE", "Write a page with pictures of a store, for any browser",
     "  esker report chat -o chat.html\n"
     "  esker report chat --watch 60s -o chat.html\n"},
    {"ps", "Look", "STORE", "Show which processes have a store open, and what they pin",
     "  esker ps chat\n"},
    {"log", "Look", "STORE", "Show what happened: damage, dead processes, growth",
     "  esker log chat\n"
     "  esker log chat -f --json\n"},
    {"verify", "Check", "STORE|FILE", "Check every header and every byte; exit 1 on damage",
     "  esker verify chat\n"
     "  esker verify chat.esnap\n",
     "check"},
    {"reap", "Check", "STORE", "Clean up after dead processes (it also happens by itself)",
     "  esker reap chat\n"},
    {"session", "Sessions", "COMMAND STORE", "Look after sessions: chats that are kept by name",
     "  esker import chat slot.bin --assume-model --session \"support 17\"\n"
     "  esker session ls chat\n"
     "  esker session rm chat --expired -n\n"},
    {"session ls", "Look", "STORE", "List the sessions: how much of each is reusable",
     "  esker session ls chat\n"
     "  esker session ls chat --sort name --json\n"},
    {"session show", "Look", "STORE NAME", "Show all that is known of a session; exit 1 on damage",
     "  esker session show chat \"support 17\"\n"
     "  esker session show chat \"support 17\" --json | jq .reusable_tokens\n"},
    {"session rm", "Change", "STORE NAME...", "Forget sessions, and wipe what only they use",
     "  esker session rm chat \"support 17\" -n\n"
     "  esker session rm chat --expired\n"},
    {"session fork", "Change", "STORE NAME NEW", "Start a new session where another one is now",
     "  esker session fork chat \"support 17\" \"support 17, other answer\"\n"},
    {"session rename", "Change", "STORE NAME NEW", "Give a session another name",
     "  esker session rename chat \"support 17\" \"closed 17\"\n"},
    {"session keep", "Change", "STORE NAME", "Never evict the blocks of a session",
     "  esker session keep chat \"support 17\"\n"
     "  esker session keep chat \"support 17\" --keep-max 8GiB\n"
     "  esker session keep chat \"support 17\" --off\n"},
    {"import", "Move", "STORE FILE", "Store what a snapshot or an engine's file holds",
     "  esker import chat chat.esnap\n"
     "  esker export chat - | ssh host esker import --create chat -\n"
     "  esker import chat slot.bin --model-file model.gguf\n"
     "  esker import chat slot.bin --model-file model.gguf --session \"support 17\" --ttl 7d\n"
     "  esker import chat - --assume-model < slot.bin\n"},
    {"export", "Move", "STORE [PATH...] [-]",
     "Write stored prefixes as a snapshot or an engine's file",
     "  esker export chat -o chat.esnap\n"
     "  esker export chat 9f3c11ab02de --codec zstd -o one.esnap\n"
     "  esker export chat - | ssh host esker import --create chat -\n"
     "  esker export chat --ids prompt.json --first 2000 --like old.bin -o slot.bin\n"
     "  esker export chat --session \"support 17\" --like old.bin -o slot.bin\n"
     "  esker export chat 9f3c --format safetensors -o prefix.safetensors\n"},
    {"diff", "Move", "A B", "Compare two stores or snapshots, byte by byte; exit 1 if they differ",
     "  esker diff chat chat.esnap\n"
     "  esker diff monday.esnap tuesday.esnap --json\n"},
    {"merge", "Move", "FILE FILE...", "Make one snapshot out of several",
     "  esker merge monday.esnap tuesday.esnap -o both.esnap\n"},
    {"split", "Move", "FILE", "Take sessions out of a snapshot, into a new one",
     "  esker split chat.esnap --session \"support 17\" -o 17.esnap\n"},
    {"repack", "Move", "FILE", "Compress a snapshot in another way",
     "  esker repack chat.esnap --codec zstd --level 9 -o small.esnap\n"
     "  esker repack chat.esnap --lossy q8 -o half.esnap\n"},
    {"backup", "Move", "[STORE]", "Write all sessions of a store as one snapshot",
     "  esker backup chat -o chat.esnap\n"
     "  esker backup --all /mnt/backup --codec zstd -f\n"},
    {"restore", "Move", "STORE FILE", "Bring a snapshot back, into a new store if need be",
     "  esker restore chat chat.esnap\n"},
    {"convert", "Move", "IN OUT", "Make another kind of file of one: llama.cpp, esnap, safetensors",
     "  esker convert slot.bin chat.esnap --model-file model.gguf\n"
     "  esker convert chat.esnap new.slot --like old.slot\n"
     "  esker convert slot.bin chat.session --arch llama\n"
     "  esker convert chat.esnap chat.safetensors --session \"support 17\"\n"},
    {"cat", "Move", "STORE|FILE [PATH]", "Write the rows of one layer as a matrix for numpy (.npy)",
     "  esker cat chat 9f3c11ab02de --layer 0 --plane key -o k0.npy\n"
     "  esker cat chat.esnap --session \"support 17\" --layer 5 --plane value --range 0:64 > "
     "v.npy\n"
     "  esker cat slot.bin --layer 0 --plane key -o k0.npy\n"},
    {"create", "Change", "STORE", "Make a store for one model and one geometry",
     "  esker create chat --like slot.bin --model-file model.gguf\n"
     "  esker create chat --layers 32 --kv-heads 8 --head-dim 128 --dtype f16 \\\n"
     "    --model name=llama-8b --capacity 64GiB\n"},
    {"rm", "Change", "STORE PATH...", "Forget paths: free and wipe their blocks",
     "  esker rm chat 9f3c11ab02de\n"
     "  esker rm chat 9f3c 04b1 -n\n"},
    {"evict", "Change", "STORE", "Free the blocks that were not used for longest",
     "  esker evict chat --to 40GiB\n"
     "  esker evict chat --older-than 7d -n\n",
     "prune"},
    {"trim", "Change", "STORE", "Return the disk space of free blocks",
     "  esker trim chat --keep-free 20GiB\n"},
    {"freeze", "Change", "STORE", "Compress the blocks that were not used for a while",
     "  esker freeze chat --older-than 2d\n"
     "  esker freeze chat --older-than 0s --codec zstd --threads 4 -n\n"},
    {"thaw", "Change", "STORE", "Bring the frozen blocks of a prompt or a session back",
     "  esker thaw chat --ids prompt.json\n"
     "  esker thaw chat --session \"support 17\"\n"},
    {"resize", "Change", "STORE", "Give a store that nobody has open another capacity",
     "  esker resize chat --capacity 200GiB\n"
     "  esker resize chat --capacity 20GiB -n\n"
     "  esker resize chat --cold 40GiB\n"},
    {"maintain", "Keep house", "[STORE...]", "Do once what should be done daily, for all stores",
     "  esker maintain\n"
     "  esker maintain -n\n"
     "  systemctl --user enable --now esker-maintain.timer\n"},
    {"config", "Keep house", "", "Show or change what holds for all stores of the home",
     "  esker config\n"
     "  esker config --budget 200GiB\n"
     "  esker config --keep-free 10%\n"},
    {"destroy", "Change", "STORE", "Delete a store that nobody has open",
     "  esker destroy chat -n\n"
     "  esker destroy chat\n"},
});

[[nodiscard]] const Verb* find_verb(std::string_view name) noexcept;

/// The usage lines of a command, or of the program for any other name.
[[nodiscard]] std::string usage_of(std::string_view name);

/// "there is no command "lst"; did you mean `esker ls`?" `parent` is "" or "session".
[[nodiscard]] std::string no_such_verb(std::string_view parent, std::string_view word);

/// "session ls, session show, …": the commands within one.
[[nodiscard]] std::string commands_within(std::string_view parent);

}  // namespace esker::cli
