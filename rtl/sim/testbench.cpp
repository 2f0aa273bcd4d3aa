// Test of one verifier: `testbench random SEED PAGES`, `testbench bad SEED`, `testbench dump SEED
// PAGES PAGES_FILE CHECKSUMS_FILE`, `testbench cycles PAGES PERIOD LATENCY`. Prints one JSON
// object; exits with 1 and a reason if anything is wrong.

#include <memory>

#include "bench.h"

namespace {

Stream whole(Maker &maker, long pages) {
  Stream stream;
  for (long i = 0; i < pages; i++) stream.pages.push_back(maker.next());
  return stream;
}

void report(const Bench &bench) {
  std::printf("{\"ok\": true, \"results\": %ld, \"cycles\": %ld, \"source_stalls\": %ld, "
              "\"sink_stalls\": %ld, \"first_result\": %ld, \"last_result\": %ld}\n",
              bench.results, bench.cycle, bench.source_stalls, bench.sink_stalls,
              bench.first_result, bench.last_result);
}

/// Streams of all lengths, one directly after another, under stalls; about `pages` pages.
void random_streams(Bench &bench, long pages) {
  Maker maker(bench.random, kPageBytes);
  const long round = long(PAGES) * UNITS;
  const long lengths[] = {1, PAGES, PAGES + 1, round, round + 1, PAGES > 1 ? PAGES - 1 : 2};
  for (int i = 0; pages > 0; i++) {
    const bool fixed = i < 6 && lengths[i] <= pages;
    long length = fixed ? lengths[i] : 1 + long(bench.random() % (2 * round));
    length = std::min(length, pages);
    bench.send(whole(maker, length));
    pages -= length;
    // Sometimes the pipeline runs empty first.
    if (bench.random() % 4 == 0) bench.drain(true);
  }
  bench.drain(true);
}

/// Streams that break off, and resets in the middle; right streams before and after.
void bad_streams(Bench &bench) {
  Maker maker(bench.random, kPageBytes);
  const int cuts[] = {1, kBeats - 1, kBeats / 2, 1 + int(bench.random() % std::max(1, kBeats - 1))};
  const long lengths[] = {0, 1, PAGES - 1, PAGES, PAGES + 1, long(PAGES) * UNITS};
  for (int round = 0; round < 3; round++) {
    for (long length : lengths) {
      if (kBeats == 1) break;  // a page of one beat cannot break off
      Stream stream = whole(maker, length);
      stream.broken_beats = std::max(1, cuts[bench.random() % 4]);
      bench.send(stream);
      // Later streams are checked as usual, at once or after a pause.
      if (bench.random() % 2) bench.drain(true);
      bench.send(whole(maker, 1 + long(bench.random() % (PAGES + 1))));
    }
    bench.drain(true);
    // A reset anywhere: in a page, while units compute, while results wait.
    bench.restart(1);
    bench.send(whole(maker, 2 * PAGES + 1));
    long cycles = long(bench.random() % uint64_t(kSteps + (2 * PAGES + 1) * kBeats));
    for (; cycles > 0; cycles--) bench.step(bench.random() % 4 != 0, bench.random() % 4 == 0);
    bench.restart(1 + int(bench.random() % 3));
    bench.send(whole(maker, PAGES + 1));
    bench.drain(round != 0);
    bench.restart(1);
  }
}

/// Writes pages and the checksums that the verifier gave, for another program to compare.
void dump(Bench &bench, long pages, const char *pages_file, const char *checksums_file) {
  Maker maker(bench.random, kPageBytes);
  const Stream stream = whole(maker, pages);
  bench.send(stream);
  FILE *out = std::fopen(pages_file, "wb");
  for (const Page &page : stream.pages) std::fwrite(page.data(), 1, page.size(), out);
  std::fclose(out);
  out = std::fopen(checksums_file, "wb");
  // Results leave in the order of pages, each checked by number; take them as they come.
  while (bench.results < pages) {
    if (bench.dut->m_tvalid) {
      const uint32_t checksum = uint32_t(bench.dut->m_tdata);
      std::fwrite(&checksum, 4, 1, out);
    }
    bench.step(true, true);
  }
  std::fclose(out);
}

/// Cycles of one stream from a memory: the first beat comes after `latency` cycles, the others
/// `period` / 1024 cycles apart or more. Only the last beat's wait counts when the verifier stalls.
void cycles(Bench &bench, long pages, long period, long latency) {
  Page page(kPageBytes);
  for (auto &byte : page) byte = uint8_t(bench.random());
  bench.send(Stream{std::vector<Page>(size_t(pages), page), 0});
  long due = latency * 1024;
  while (bench.results < pages) {
    bench.step(bench.cycle * 1024 >= due, true);
    // `cycle` is that of the next step: the beat was taken in the one before.
    if (bench.taken) due = std::max(due, (bench.cycle - 1) * 1024 - 1023) + period;
    if (bench.cycle > 1000000000L) fail("it hangs");
  }
}

}  // namespace

int main(int count, char **words) {
  auto number = [&](int i) { return i < count ? std::atol(words[i]) : 0L; };
  const std::string mode = count > 1 ? words[1] : "";
  if (!reference_is_right()) fail("the reference does not give the published values");
  const bool timed = mode == "cycles";
  Bench bench(timed ? 1 : uint64_t(number(2)));
  if (mode == "random") random_streams(bench, number(3));
  else if (mode == "bad") bad_streams(bench);
  else if (mode == "dump" && count == 6) dump(bench, number(3), words[4], words[5]);
  else if (timed) cycles(bench, number(2), number(3), number(4));
  else fail("wrong use: see the head of testbench.cpp");
  report(bench);
}
