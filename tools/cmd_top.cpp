#include <unistd.h>

#include <chrono>
#include <csignal>

#include "args.hpp"
#include "screen.hpp"
#include "store_operand.hpp"
#include "top_sample.hpp"
#include "top_view.hpp"

namespace esker::cli {

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// The stores that are watched, as they were the last two times.
class Watched {
 public:
  explicit Watched(const TopArgs& args) : home_(args.store.empty()) {
    if (!home_) places_.push_back(place_of(args.store));
  }

  void look() {
    if (home_) places_ = stores_in_home();
    std::vector<TopPair> fresh;
    for (const StorePlace& place : places_) {
      TopSample now = look_once(place);
      const auto same = [&now](const TopPair& pair) { return pair.now.label == now.label; };
      const auto old = std::find_if(pairs_.begin(), pairs_.end(), same);
      TopSample before = old == pairs_.end() ? now : std::move(old->now);
      fresh.push_back({std::move(before), std::move(now)});
    }
    pairs_ = std::move(fresh);
  }

  [[nodiscard]] std::vector<std::string> view(const TopFrame& frame) const {
    return home_ ? home_view(pairs_, frame) : store_view(pairs_.front(), frame);
  }
  [[nodiscard]] Object value() const {
    List stores;
    for (const TopPair& pair : pairs_) stores.emplace_back(top_value(pair));
    return {{"stores", std::move(stores)}};
  }

 private:
  bool home_;
  std::vector<StorePlace> places_;
  std::vector<TopPair> pairs_;
};

/// Waits out an interval. False when it is over with the view.
bool rest(EndSignals& signals, milliseconds interval, const Output& out) {
  const Clock::time_point end = Clock::now() + interval;
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
    if (left <= milliseconds::zero()) return true;
    // A reader that has gone away is noticed in between.
    const auto piece = std::min<milliseconds>(left, milliseconds(200));
    if (signals.wait(piece, false) == EndSignals::Woken::ended || out.reader_gone()) return false;
  }
}

/// One view after another, for who has no terminal.
void print(const TopArgs& args, Watched& watched, EndSignals& signals, Output& out) {
  watched.look();
  for (std::uint32_t i = 0; i < args.count.value_or(1); ++i) {
    if (!rest(signals, milliseconds(args.interval_ms), out)) return;
    watched.look();
    if (i != 0) out.line("");
    const TopFrame frame{{SIZE_MAX, 100}, out.is_colored(), ""};
    if (!out.is_json()) {
      for (const std::string& line : watched.view(frame)) out.text(line + "\n");
    }
    out.json_line(watched.value());
    out.flush();
  }
}

/// Waits for the next look, and draws anew when the terminal changes. False to end.
bool wait_on_screen(Screen& screen, EndSignals& signals, const Watched& watched,
                    Clock::time_point end, const Output& out) {
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
    if (left <= milliseconds::zero()) return true;
    switch (signals.wait(left, screen.has_keys())) {
      case EndSignals::Woken::ended:
        return false;
      case EndSignals::Woken::key:
        if (screen.quit_typed()) return false;
        break;
      case EndSignals::Woken::resized:
        screen.show(watched.view({Screen::size(), out.is_colored(), "q quits"}));
        break;
      case EndSignals::Woken::time:
        return true;
    }
  }
}

void show(const TopArgs& args, Watched& watched, EndSignals& signals, Output& out) {
  Screen screen(out);
  for (std::uint32_t i = 0; !args.count || i < *args.count; ++i) {
    watched.look();
    screen.show(watched.view({Screen::size(), out.is_colored(), "q quits"}));
    if (out.reader_gone()) return;
    const Clock::time_point end = Clock::now() + milliseconds(args.interval_ms);
    if (!wait_on_screen(screen, signals, watched, end, out)) return;
  }
}

}  // namespace

int run(const TopArgs& args, Output& out) {
  if (!args.store.empty()) {
    const StorePlace place = place_of(args.store);
    if (auto info = inspect_place(place); !info) return out.fail(place.label, info.error());
  }
  Watched watched(args);
  int signal = 0;
  {
    EndSignals signals;
    if (!out.is_json() && isatty(STDOUT_FILENO) == 1) {
      show(args, watched, signals, out);
    } else {
      print(args, watched, signals, out);
    }
    signal = signals.signal();
  }
  // Ctrl-C is how people leave; any other signal ends us as it would have without us in its way.
  if (signal != 0 && signal != SIGINT) std::raise(signal);
  return code(Exit::ok);
}

}  // namespace esker::cli
