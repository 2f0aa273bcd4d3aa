// Bench around one verifier: a source of streams, a sink that checks every result, and a clock.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <set>
#include <string>

#include "Vverifier.h"
#include "pages.h"
#include "verilated.h"

// PAGES, UNITS, LANE_BITS, BUS_BITS: parameters of the model, defined by the build.
constexpr int kPageBytes = 4096;
constexpr int kBeats = 8 * kPageBytes / BUS_BITS;
constexpr int kSteps = 8 * kPageBytes / LANE_BITS;

/// Whole pages, and the beats of a page that breaks off (0: the stream ends as it should).
struct Stream {
  std::vector<Page> pages;
  int broken_beats = 0;
};

[[noreturn]] inline void fail(const std::string &why) {
  std::printf("{\"ok\": false, \"why\": \"%s\"}\n", why.c_str());
  std::exit(1);
}

/// Sets bits of an input port, whatever type the model gives it.
template <typename Port>
void put_beat(Port &port, const Page &page, int beat) {
  auto *words = reinterpret_cast<uint8_t *>(&port);
  if constexpr (BUS_BITS >= 8) {
    std::memcpy(words, page.data() + size_t(beat) * (BUS_BITS / 8), BUS_BITS / 8);
  } else {
    const int bit = beat * BUS_BITS;
    words[0] = (page[bit / 8] >> (bit % 8)) & ((1 << BUS_BITS) - 1);
  }
}

/// Probabilities per cycle, in 1024ths, that the source offers a beat and that the sink takes a
/// result. They hold until cycle `until`; then the bench draws others.
struct Willing {
  int source = 1024, sink = 1024;
  long until = 0;
};

class Bench {
 public:
  explicit Bench(uint64_t seed) : random(seed) {
    const std::string reset = "+verilator+seed+" + std::to_string(seed % 2147483646 + 1);
    const char *arguments[] = {"bench", "+verilator+rand+reset+2", reset.c_str()};
    context.commandArgs(3, arguments);
    dut = std::make_unique<Vverifier>(&context);
    dut->s_tvalid = 0;
    dut->m_tready = 0;
    dut->clk = 0;
    restart(2);
  }
  ~Bench() { dut->final(); }

  /// Queues a stream and what must come of it.
  void send(Stream stream) {
    if (stream.pages.empty() && stream.broken_beats == 0) fail("a stream without a beat");
    if (!stream.pages.empty()) {
      Expected expected;
      for (const Page &page : stream.pages) expected.checksums.push_back(crc32c(page));
      awaited.push_back(expected);
      results_due += stream.pages.size();
    }
    if (stream.broken_beats) breaks_due++;
    queue.push_back(std::move(stream));
  }

  /// Runs until all that was sent has been answered, with stalls on both sides if `stalls`.
  void drain(bool stalls) {
    Willing willing;
    long last_progress = cycle;
    while (!queue.empty() || !awaited.empty()) {
      if (stalls && cycle >= willing.until) willing = another();
      const bool source = int(random() % 1024) < willing.source;
      const bool sink = int(random() % 1024) < willing.sink;
      if (step(source, sink)) last_progress = cycle;
      // The longest wait: every unit computes, in phases of little will.
      if (cycle - last_progress > 40L * (kSteps + PAGES * kBeats) + 100000) fail("it hangs");
    }
    for (int i = 0; i < 8; i++) step(false, true);
    if (dut->m_tvalid) fail("a result that no page asked for");
    if (bool(dut->error) != (breaks_due > 0)) fail("error is not what it should be");
  }

  /// Runs one cycle; returns true if a beat or a result moved.
  bool step(bool source, bool sink) {
    offer(source);
    dut->m_tready = sink;
    dut->eval();
    check_held();
    taken = dut->s_tvalid && dut->s_tready;
    const bool left = dut->m_tvalid && dut->m_tready;
    source_stalls += dut->s_tvalid && !dut->s_tready;
    sink_stalls += dut->m_tvalid && !dut->m_tready;
    if (left) check_result();
    if (broke && !dut->error) fail("error fell, or never rose");
    dut->clk = 1;
    dut->eval();
    dut->clk = 0;
    cycle++;
    if (taken) advance();
    return taken || left;
  }

  /// Resets for `cycles` cycles; what was under way is forgotten.
  void restart(int cycles) {
    dut->rst = 1;
    dut->s_tvalid = 0;
    for (int i = 0; i < cycles; i++) {
      dut->eval();
      dut->clk = 1;
      dut->eval();
      dut->clk = 0;
    }
    dut->rst = 0;
    dut->eval();
    if (dut->m_tvalid || dut->error) fail("reset leaves a result or an error");
    queue.clear();
    awaited.clear();
    page = beat = 0;
    offering = held = broke = false;
    breaks_due = 0;
  }

  Random random;
  VerilatedContext context;  // outlives the model
  std::unique_ptr<Vverifier> dut;
  std::deque<Stream> queue;
  long cycle = 0, results = 0, results_due = 0, source_stalls = 0, sink_stalls = 0;
  bool taken = false;  // a beat, in the last cycle
  /// Cycle of the first and of the last result.
  long first_result = -1, last_result = -1;

 private:
  struct Expected {
    std::vector<uint32_t> checksums;
    std::set<uint32_t> seen;
  };

  Willing another() {
    static const int levels[] = {1024, 1024, 973, 512, 102, 20};
    Willing willing;
    willing.source = levels[random() % 6];
    willing.sink = levels[random() % 6];
    // One time in five, one side waits for as long as a group takes, so that everything fills up.
    if (random() % 5 == 0) (random() % 2 ? willing.source : willing.sink) = 0;
    willing.until = cycle + 1 + long(random() % uint64_t(2 * (kSteps + kBeats) + 100));
    return willing;
  }

  int beats_of_page() const {
    const Stream &stream = queue.front();
    return page < stream.pages.size() ? kBeats : stream.broken_beats;
  }

  void offer(bool source) {
    // A beat that was offered stays until it is taken.
    if (!offering) offering = source && !queue.empty();
    dut->s_tvalid = offering;
    if (!offering) return;
    const Stream &stream = queue.front();
    static const Page rest(kPageBytes, 0x5A);
    put_beat(dut->s_tdata, page < stream.pages.size() ? stream.pages[page] : rest, beat);
    const size_t last_page = stream.pages.size() - (stream.broken_beats ? 0 : 1);
    dut->s_tlast = page == last_page && beat == beats_of_page() - 1;
  }

  void advance() {
    offering = false;
    if (++beat < beats_of_page()) return;
    beat = 0;
    const Stream &stream = queue.front();
    if (++page < stream.pages.size() + (stream.broken_beats ? 1 : 0)) return;
    broke = broke || stream.broken_beats;
    page = 0;
    queue.pop_front();
  }

  /// AXI4-Stream: what was offered and not taken stays as it is.
  void check_held() {
    if (held && (!dut->m_tvalid || dut->m_tdata != held_data || dut->m_tlast != held_last)) {
      fail("a result changed before it was taken");
    }
    held = dut->m_tvalid && !dut->m_tready;
    held_data = dut->m_tdata;
    held_last = dut->m_tlast;
  }

  void check_result() {
    if (awaited.empty()) fail("a result that no page asked for");
    Expected &stream = awaited.front();
    const uint32_t number = uint32_t(dut->m_tdata >> 32);
    const std::string where = "page " + std::to_string(number) + " at cycle " +
                              std::to_string(cycle);
    if (number >= stream.checksums.size()) fail("no such page: " + where);
    if (!stream.seen.insert(number).second) fail("twice: " + where);
    if (uint32_t(dut->m_tdata) != stream.checksums[number]) fail("wrong checksum: " + where);
    const bool last = stream.seen.size() == stream.checksums.size();
    if (bool(dut->m_tlast) != last) fail("m_tlast is wrong: " + where);
    if (last) awaited.pop_front();
    if (first_result < 0) first_result = cycle;
    last_result = cycle;
    results++;
  }

  std::deque<Expected> awaited;
  size_t page = 0;
  int beat = 0, breaks_due = 0;
  bool offering = false, broke = false, held = false, held_last = false;
  uint64_t held_data = 0;
};
